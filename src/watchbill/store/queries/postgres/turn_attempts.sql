-- Insert rows as ready, running or failed, or as parked for a person, nothing else; a failed one is due for a look at once.
-- Of a question the time for a look is that of its reminder.
INSERT INTO watchbill.attempt (
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, alone, span,
    rank, started_at, watch_at, ended_at, progress, progress_at, policy, args, result, kind, why, held, gate,
    remind_at, unsure, acts_until, cancel, ahead
)
SELECT
    new.id, new.run, run_id, coalesce(part, 0), shard, call, step, queue, state, fence, agent, coalesce(failures, 0),
    coalesce(losses, 0), coalesce(alone, false), span, now - coalesce(rank_ahead, 0), now - started_ago,
    now + CASE WHEN state = 2 THEN 0 WHEN kind <> 1 THEN watch_in END,
    CASE WHEN state = 2 THEN now END, progress, CASE WHEN progress IS NOT NULL THEN now END, policy, args, result,
    kind, why, coalesce(held, false), gate, CASE WHEN kind = 1 THEN now + watch_in END, coalesce(unsure, false),
    acts_until, coalesce(cancel, false), nullif(rank_ahead, 0)
FROM unnest(
    :attempt_ids::bigint[], :attempt_runs::bigint[], :attempt_run_ids::text[], :attempt_parts::integer[],
    :attempt_shards::integer[], :attempt_calls::text[], :attempt_steps::text[], :attempt_queues::integer[],
    :attempt_states::smallint[], :attempt_fences::bigint[], :attempt_agents::bigint[],
    :attempt_failures::integer[], :attempt_losses::integer[], :attempt_alones::boolean[], :attempt_spans::bigint[],
    :attempt_started_agos::bigint[], :attempt_watch_ins::bigint[], :attempt_progresses::bytea[],
    :attempt_policies::bytea[], :attempt_args::bytea[], :attempt_results::bytea[], :attempt_kinds::smallint[],
    :attempt_whys::text[], :attempt_rank_aheads::bigint[], :attempt_helds::boolean[], :attempt_gates::text[],
    :attempt_unsures::boolean[], :attempt_acts_untils::bigint[], :attempt_cancels::boolean[]
) AS new (
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, alone, span,
    started_ago, watch_in, progress, policy, args, result, kind, why, rank_ahead, held, gate, unsure, acts_until,
    cancel
)
CROSS JOIN mine
WHERE whole
    AND (state IN (0, 1, 2) OR (state = 3 AND kind = 1))
RETURNING id
