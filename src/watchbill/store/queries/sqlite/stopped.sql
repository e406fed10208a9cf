-- Name what keeps anything of an agent's namespace from starting: paused by somebody, or a dependency in trouble.
SELECT name
FROM gate
WHERE (paused OR state <> 0)
    AND namespace = (SELECT namespace FROM agent WHERE id = :agent)
