-- Let schedules that were created at run time start the version of their workflow that this code has.
UPDATE schedule
SET version = :version, rev = rev + 1
WHERE namespace = :namespace
    AND workflow = :workflow
    AND created
    AND version <> :version
