-- End attempts, as they were seen, whose agents have left in peace or never were there: what follows is judged.
UPDATE watchbill.attempt
SET
    state = 2,
    watch_at = (SELECT watchbill.at(:now::bigint)),
    ended_at = (SELECT watchbill.at(:now::bigint)),
    result = :result::bytea,
    unsure = true
WHERE id = ANY (:ids::bigint[])
    AND (id, fence, state) IN (SELECT * FROM unnest(:ids::bigint[], :fences::bigint[], :states::smallint[]))
    AND state = :running::smallint
    AND coalesce((SELECT agent.state FROM watchbill.agent WHERE agent.id = attempt.agent), 3) = 3
RETURNING id
