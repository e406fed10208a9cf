-- Find a run that has ended because a step failed for good, and that belongs to no incident; gives when it ended.
SELECT at
FROM failed_run
WHERE run = ?1
    AND incident IS NULL
