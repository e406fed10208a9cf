-- Count the attempts of a namespace that run, in all regions, up to a limit. No index has namespaces: all rows that run
-- are looked at.
SELECT count(*)
FROM (
    SELECT 1
    FROM watchbill.attempt_place AS running
    WHERE running.state = 1
        AND (SELECT namespace FROM watchbill.queue WHERE id = running.queue) = :namespace
    LIMIT :most::bigint
) AS counted
