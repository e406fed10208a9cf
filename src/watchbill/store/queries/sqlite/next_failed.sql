-- Read the next runs of an incident that had ended by then and about which nothing was done yet.
SELECT failed_run.run, run.namespace, run.id
FROM failed_run
CROSS JOIN run ON run.num = failed_run.run
WHERE failed_run.incident = :incident
    AND failed_run.run > :fed_to
    AND failed_run.at <= :ordered_at
ORDER BY failed_run.run
LIMIT :limit
