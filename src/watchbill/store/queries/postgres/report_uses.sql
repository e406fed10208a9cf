-- Write outcomes and checkpoints as `report` does, of attempts some of which use a dependency.
-- Acts: 0 done, 1 raised, 2 its child died (the loss stands), 3 handed back, 4 a checkpoint only, 5 stopped
-- after it began. A canary that says that its dependency is ill, and no more, is charged nothing, and goes to the end of
-- the line: it has tried for all the others.
UPDATE watchbill.attempt
SET
    state = CASE
        WHEN said.act = 0 THEN 4
        WHEN said.spared AND why = 'canary' AND NOT cancel THEN 0
        WHEN said.act IN (1, 2) THEN 2
        WHEN said.act IN (3, 5) THEN CASE WHEN cancel THEN 2 ELSE 0 END
        ELSE state
    END,
    losses = losses - CASE WHEN said.act IN (0, 1, 3, 5) THEN 1 ELSE 0 END,
    failures = failures + CASE
        WHEN said.act = 5 AND cancel THEN 1
        WHEN said.act = 1 AND NOT (said.spared AND why IS NOT DISTINCT FROM 'canary' AND NOT cancel) THEN 1
        ELSE 0
    END,
    rank = CASE
        WHEN said.spared AND why = 'canary' AND NOT cancel THEN greatest(rank, (SELECT watchbill.at(:now::bigint)))
        ELSE rank
    END,
    result = CASE
        WHEN said.spared AND why = 'canary' AND NOT cancel THEN NULL
        WHEN said.act IN (0, 1, 2) THEN said.body
        WHEN said.act = 5 OR (said.act = 3 AND cancel) THEN said.body
        WHEN said.act = 3 THEN NULL
        ELSE result
    END,
    unsure = unsure OR said.act IN (2, 5),
    ended_at = CASE
        WHEN said.spared AND why = 'canary' AND NOT cancel THEN NULL
        WHEN said.act IN (0, 1, 2) OR (said.act IN (3, 5) AND cancel) THEN (SELECT watchbill.at(:now::bigint))
        WHEN said.act IN (3, 5) THEN NULL
        ELSE ended_at
    END,
    watch_at = CASE
        WHEN said.spared AND why = 'canary' AND NOT cancel THEN NULL
        WHEN said.act IN (1, 2) OR (said.act IN (3, 5) AND cancel) THEN (SELECT watchbill.at(:now::bigint))
        WHEN said.act IN (0, 3, 5) THEN NULL
        ELSE watch_at
    END,
    checkpoint = CASE WHEN said.kept THEN said.checkpoint ELSE attempt.checkpoint END
FROM unnest(
    :ids::bigint[], :fences::bigint[], :acts::smallint[], :bodies::bytea[], :kept::boolean[], :checkpoints::bytea[],
    :spared::boolean[]
) AS said (id, fence, act, body, kept, checkpoint, spared)
WHERE attempt.id = said.id
    AND attempt.fence = said.fence
    AND attempt.state = :running::smallint
RETURNING attempt.id, attempt.fence, attempt.cancel, attempt.run, attempt.gate, attempt.queue, attempt.agent
