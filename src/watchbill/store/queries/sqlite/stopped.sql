-- Name what keeps anything from starting: paused by somebody, or a dependency in trouble.
SELECT namespace, name
FROM gate
WHERE paused OR state <> 0
