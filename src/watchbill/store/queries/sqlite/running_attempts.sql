-- Count the attempts of a namespace that run, up to a limit. Rows that run are found by their agent: no index has namespaces.
SELECT count(*)
FROM (
    SELECT 1
    FROM attempt AS running
    CROSS JOIN queue AS theirs ON theirs.id = running.queue
    WHERE running.state = 1
        AND running.agent > 0
        AND theirs.namespace = :namespace
    LIMIT :most
)
