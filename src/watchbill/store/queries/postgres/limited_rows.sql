-- Find the most urgent rows behind gates that have room: of each gate no more than it lets through. Gates take turns: the
-- first row of each counts from the last start behind that gate, the others from now, less their head start.
-- What has failed before is left out where the budget of its dependency is spent: it hides nobody.
-- What failed or was lost with this agent is left to others for a while; what is paused by its name stays where it is.
-- Nobody is tried with what must not be repeated: its failure would leave a doubt.
WITH stopped AS MATERIALIZED (
    SELECT name
    FROM watchbill.gate
    WHERE namespace || '' = (SELECT namespace FROM watchbill.agent WHERE id = :agent)
        AND paused
        AND (paused OR state <> 0)
)
SELECT mine.place, ready.id, ready.rank, kind.lonely, ready.retry, ready.ahead
FROM unnest(:places::integer[], :queues::integer[], :gates::text[], :rooms::bigint[], :retries::boolean[], :lasts::bigint[])
    AS mine (place, queue, gate, room, retries, last)
CROSS JOIN (VALUES (false, :slots::bigint), (true, least(:alone::bigint, :slots::bigint))) AS kind (lonely, most)
CROSS JOIN LATERAL (
    SELECT
        waiting.id, waiting.rank, waiting.failures > 0 AS retry, coalesce(waiting.ahead, 0) AS ahead,
        row_number() OVER (ORDER BY waiting.rank, waiting.id) AS n
    FROM watchbill.attempt AS waiting
    WHERE waiting.queue::bigint = mine.queue
        AND waiting.gate = mine.gate
        AND (waiting.alone OR waiting.losses >= 2) = kind.lonely
        AND waiting.state = 0
        AND NOT waiting.held
        AND waiting.gate IS NOT NULL
        AND (mine.retries OR waiting.failures = 0)
        AND waiting.step = ANY (:steps::text[])
        AND (NOT :trial::boolean OR position(:unrepeatable::bytea IN waiting.policy) = 0)
        AND waiting.step <> ALL (ARRAY(SELECT substr(name, 6) FROM stopped WHERE name LIKE 'step:%'))
        AND (
            (SELECT count(*) FROM stopped WHERE name LIKE 'workflow:%') = 0
            OR (SELECT 'workflow:' || run.workflow FROM watchbill.run WHERE run.num = waiting.run)
                <> ALL (ARRAY(SELECT name FROM stopped))
        )
        AND (waiting.avoid IS DISTINCT FROM :agent OR waiting.avoid_until <= (SELECT watchbill.at(:now::bigint)))
    ORDER BY waiting.rank, waiting.id
    LIMIT least(mine.room, kind.most)
) AS ready
WHERE NOT EXISTS (
    SELECT 1
    FROM stopped
    CROSS JOIN LATERAL (SELECT needs FROM watchbill.queue WHERE queue.id = mine.queue OFFSET 0) AS its
    WHERE substr(stopped.name, 7) = ANY (watchbill.need_names(its.needs))
        AND stopped.name LIKE 'needs:%'
)
ORDER BY
    greatest(ready.rank, CASE WHEN ready.n = 1 THEN mine.last ELSE (SELECT watchbill.at(:now::bigint)) END - ready.ahead),
    ready.n, ready.rank, ready.id
LIMIT :limit::bigint
