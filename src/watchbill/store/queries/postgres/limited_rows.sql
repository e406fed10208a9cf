-- Find the most urgent rows behind gates that have room: of each gate no more than it lets through.
-- What failed or was lost with this agent is left to others for a while.
SELECT mine.place, ready.id, ready.rank, kind.lonely
FROM unnest(:places::integer[], :queues::integer[], :gates::text[], :rooms::bigint[]) AS mine (place, queue, gate, room)
CROSS JOIN (VALUES (false, :slots::bigint), (true, least(:alone::bigint, :slots::bigint))) AS kind (lonely, most)
CROSS JOIN LATERAL (
    SELECT waiting.id, waiting.rank
    FROM watchbill.attempt AS waiting
    WHERE waiting.queue = mine.queue
        AND waiting.gate = mine.gate
        AND (waiting.alone OR waiting.losses >= 2) = kind.lonely
        AND waiting.state = 0
        AND NOT waiting.held
        AND waiting.gate IS NOT NULL
        AND waiting.step = ANY (:steps::text[])
        AND (waiting.avoid IS DISTINCT FROM :agent OR waiting.avoid_until <= (SELECT watchbill.at(:now::bigint)))
    ORDER BY waiting.rank, waiting.id
    LIMIT least(mine.room, kind.most)
) AS ready
ORDER BY ready.rank, ready.id
LIMIT :limit::bigint
