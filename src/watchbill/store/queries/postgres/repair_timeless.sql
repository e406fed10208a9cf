-- Give runs that have not begun, and have no time at which they would, the time it is.
UPDATE watchbill.run
SET wake_at = (SELECT watchbill.at(:now::bigint))
WHERE num = ANY (:ids::bigint[])
    AND status = :scheduled::smallint
    AND wake_at IS NULL
RETURNING num
