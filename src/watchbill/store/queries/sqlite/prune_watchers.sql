-- Forget supervisors that are out of time.
DELETE FROM supervisor
WHERE until <= :now
    AND id <> :id
