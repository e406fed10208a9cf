-- Lease ready rows to one agent: a new fence, a loss on account, nothing left of the attempt before but its checkpoint.
-- No fence is below the floor: a store that has lost its newest commits must not issue their fences again.
UPDATE attempt
SET
    state = 1, fence = max(fence + 1, coalesce((SELECT value FROM meta WHERE key = 'fence_floor'), 0)),
    losses = losses + 1, agent = :agent, lease_no = :lease_no,
    started_at = :now, watch_at = :now + span * 1000, ended_at = NULL,
    cancel = 0, why = NULL, symptom = NULL, result = NULL, progress = NULL, progress_at = NULL
WHERE id IN (SELECT value FROM json_each(:ids))
    AND state = 0
    AND held = 0
RETURNING
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
    started_at, ended_at, watch_at, progress_at, progress, checkpoint, policy, args, result,
    kind, held, symptom, earlier, doubt, unsure
