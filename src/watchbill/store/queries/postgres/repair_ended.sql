-- Delete rows, as they were seen, whose runs have ended or are not there.
DELETE FROM watchbill.attempt
WHERE id = ANY (:ids::bigint[])
    AND (id, fence, state) IN (SELECT * FROM unnest(:ids::bigint[], :fences::bigint[], :states::smallint[]))
    AND coalesce((SELECT status FROM watchbill.run WHERE run.num = attempt.run), 10) >= 10
RETURNING id
