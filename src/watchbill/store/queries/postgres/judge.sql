-- Apply verdicts whose evidence still holds: fence, state, progress, policy, and the death of the agent if they say so.
-- What runs on is looked at again, if nobody has asked it to stop meanwhile: that is looked at sooner.
-- The agents are locked before that is judged: one that beats at this moment is waited for, and is alive.
-- What its run wants no more since is not moved as if it did.
-- What is parked is moved when its time is over: then by nobody who decided meanwhile, for that takes the time away.
-- How many attempts were taken from an agent that is gone is counted with it: so it is not locked FOR SHARE, or two who
-- judge what one agent had would each wait for the other.
-- What becomes ready is kept from the agent that had it, for a while, if another one could do it by what it has.
WITH agents AS MATERIALIZED (
    SELECT id, state, until
    FROM watchbill.agent
    WHERE id = ANY (:dead_agents::bigint[])
    ORDER BY id
    FOR NO KEY UPDATE
),
others AS MATERIALIZED (
    SELECT
        queue.id AS queue,
        -- Two, so that one of them is another.
        ARRAY(
            SELECT agent.id
            FROM watchbill.agent
            WHERE agent.state = 1
                AND agent.until > (SELECT watchbill.at(:now::bigint))
                AND agent.wish = 0
                AND agent.suspension IS NULL
                AND agent.namespace = queue.namespace
                AND agent.region = queue.region
                AND watchbill.need_names(queue.needs) <@ watchbill.need_names(agent.needs)
            LIMIT 2
        ) AS able
    FROM watchbill.queue
    WHERE queue.id = ANY (ARRAY(SELECT queue FROM watchbill.attempt WHERE id = ANY (:ready_ids::bigint[])))
),
judged AS (
    UPDATE watchbill.attempt
    SET
        state = verdict.after,
        failures = attempt.failures + verdict.failures,
        losses = attempt.losses + verdict.losses,
        rank = CASE
            WHEN verdict.last THEN greatest(attempt.rank, (SELECT watchbill.at(:now::bigint)))
            ELSE attempt.rank
        END,
        watch_at = (SELECT watchbill.at(:now::bigint)) + verdict.watch_in,
        remind_at = NULL,
        why = verdict.why,
        incident = NULL,
        claimed_by = NULL,
        avoid = CASE
            WHEN verdict.after <> 0 THEN attempt.avoid
            WHEN EXISTS (
                SELECT 1
                FROM others
                CROSS JOIN unnest(others.able) AS other (id)
                WHERE others.queue = attempt.queue
                    AND other.id <> attempt.agent
            ) THEN attempt.agent
        END,
        avoid_until = CASE
            WHEN verdict.after <> 0 THEN attempt.avoid_until
            ELSE (SELECT watchbill.at(:now::bigint)) + :avoid_for::bigint
        END,
        result = coalesce(verdict.result, attempt.result),
        unsure = coalesce(verdict.unsure, attempt.unsure),
        acts_until = greatest(attempt.acts_until, (SELECT watchbill.at(:now::bigint)) + verdict.acts_in),
        kind = coalesce(recast.kind, attempt.kind),
        step = coalesce(recast.step, attempt.step),
        rung = coalesce(recast.rung, attempt.rung),
        policy = coalesce(recast.policy, attempt.policy),
        span = coalesce(recast.span, attempt.span),
        alone = coalesce(recast.alone, attempt.alone),
        earlier = attempt.earlier + coalesce(recast.earlier, 0),
        doubt = CASE WHEN recast.id IS NULL THEN attempt.doubt ELSE recast.doubt END,
        checkpoint = CASE WHEN recast.restart THEN NULL ELSE attempt.checkpoint END,
        queue = coalesce(recast.queue, attempt.queue),
        gate = CASE WHEN recast.queue IS NULL THEN attempt.gate ELSE recast.gate END,
        ended_at = CASE WHEN attempt.state = 1 AND verdict.after <> 1 THEN (SELECT watchbill.at(:now::bigint)) ELSE ended_at END
    FROM unnest(
        :ids::bigint[], :fences::bigint[], :states::smallint[], :progress_ats::bigint[], :dead_agents::bigint[],
        :afters::smallint[], :failures::integer[], :losses::integer[], :watch_ins::bigint[], :whys::text[],
        :results::bytea[], :runs::bigint[], :calls::text[], :decisions::bytea[], :unmoved::boolean[],
        :progresses::bytea[], :judged_by::bytea[], :watch_ats::bigint[], :cancels::boolean[], :actors::text[],
        :lasts::boolean[], :unsures::boolean[], :acts_ins::bigint[]
    ) AS verdict (
        id, fence, state, progress_at, dead_agent, after, failures, losses, watch_in, why, result, run, call, reason,
        unmoved, progress, judged_by, watch_at, cancel, actor, last, unsure, acts_in
    )
    LEFT JOIN unnest(
        :recast_ids::bigint[], :kinds::smallint[], :steps::text[], :rungs::integer[], :policies::bytea[],
        :spans::bigint[], :alones::boolean[], :earliers::integer[], :doubts::bytea[], :restarts::boolean[],
        :queues::integer[], :gates::text[]
    ) AS recast (id, kind, step, rung, policy, span, alone, earlier, doubt, restart, queue, gate)
        ON recast.id = verdict.id
    WHERE attempt.id = verdict.id
        AND attempt.fence = verdict.fence
        AND attempt.state = verdict.state
        AND attempt.progress_at IS NOT DISTINCT FROM verdict.progress_at
        AND (NOT verdict.unmoved OR attempt.progress IS NOT DISTINCT FROM verdict.progress)
        AND (verdict.judged_by IS NULL OR attempt.policy = verdict.judged_by)
        AND CASE verdict.state
            WHEN 1 THEN verdict.after = 2 OR (
                verdict.after = 1 AND attempt.cancel = verdict.cancel AND (attempt.cancel OR verdict.watch_in IS NOT NULL)
            )
            WHEN 2 THEN verdict.after IN (0, 3, 5) AND attempt.cancel = verdict.cancel
            WHEN 3 THEN attempt.watch_at = verdict.watch_at
                AND attempt.cancel = verdict.cancel
                AND attempt.watch_at <= (SELECT watchbill.at(:now::bigint))
                AND CASE attempt.why
                    WHEN 'settle' THEN verdict.after IN (0, 5)
                    WHEN 'escalate' THEN verdict.after IN (0, 3, 5)
                    WHEN 'doubt' THEN verdict.after IN (0, 3, 5)
                    ELSE verdict.after = 0
                END
        END
        AND (
            verdict.dead_agent IS NULL
            OR (
                attempt.agent = verdict.dead_agent
                AND verdict.dead_agent <> ALL (ARRAY(
                    SELECT id
                    FROM agents
                    WHERE state = 1
                        AND until > (SELECT watchbill.at(:now::bigint))
                ))
            )
        )
    -- With all that follows from it: to find it again among the verdicts would cost the square of their number.
    RETURNING attempt.id, verdict.run, verdict.call, verdict.fence, verdict.reason, verdict.actor, verdict.dead_agent
),
-- How many were taken from agents that are gone.
counted AS (
    UPDATE watchbill.agent
    SET moved = agent.moved + taken.attempts
    FROM (
        SELECT dead_agent, count(*) AS attempts
        FROM judged
        WHERE dead_agent IS NOT NULL
        GROUP BY dead_agent
    ) AS taken
    WHERE agent.id = taken.dead_agent
),
reasons AS (
    INSERT INTO watchbill.decision (run, call, fence, n, at, actor, body)
    SELECT
        judged.run, judged.call, judged.fence,
        row_number() OVER (PARTITION BY judged.run, judged.call, judged.fence ORDER BY judged.id) + coalesce((
            SELECT max(n)
            FROM watchbill.decision
            WHERE decision.run = judged.run
                AND decision.call = judged.call
                AND decision.fence = judged.fence
        ), 0),
        (SELECT watchbill.at(:now::bigint)), judged.actor, judged.reason
    FROM judged
    WHERE judged.reason IS NOT NULL
),
kept AS (
    INSERT INTO watchbill.blob (run, n, body)
    SELECT large.run, large.n, large.body
    FROM judged
    CROSS JOIN unnest(:blob_ids::bigint[], :blob_runs::bigint[], :blob_ns::bigint[], :blob_bodies::bytea[])
        AS large (id, run, n, body)
    WHERE large.id = judged.id
)
SELECT id
FROM judged
