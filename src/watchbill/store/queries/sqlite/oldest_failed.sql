-- Say when that open incident about runs that have ended was last seen which was not for longest.
SELECT min(seen_at)
FROM incident
WHERE state = 0
    AND failed = 1
    AND ordered IS NULL
