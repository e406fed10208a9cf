-- Have rows looked at now that, as they were seen, nobody would look at.
UPDATE watchbill.attempt
SET watch_at = (SELECT watchbill.at(:now::bigint))
WHERE id = ANY (:ids::bigint[])
    AND (id, fence, state) IN (SELECT * FROM unnest(:ids::bigint[], :fences::bigint[], :states::smallint[]))
    AND watch_at IS NULL
RETURNING id
