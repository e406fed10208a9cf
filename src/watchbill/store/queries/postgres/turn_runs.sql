-- Change runs, each only from a status that may become the new one (bit n of sources stands for status n). What
-- moves again belongs to no incident.
UPDATE watchbill.run
SET
    status = new.status, wake_at = new.wake_at, losses = coalesce(new.losses, 0), held = new.held,
    begun_at = new.begun_at, part = coalesce(new.part, 0), paused = coalesce(new.paused, false),
    pauses = coalesce(new.pauses, 0),
    published = new.published, early = coalesce(new.early, false), waits = new.waits,
    ended_at = CASE WHEN new.status >= 10 THEN (SELECT now FROM mine) END,
    incident = CASE WHEN new.status = 4 OR substr(new.held, 1, 14) <> 'waits for code' THEN run.incident END
FROM unnest(
    :run_nums::bigint[], :run_statuses::smallint[], :run_wake_ats::bigint[], :run_losses::integer[],
    :run_helds::text[], :run_begun_ats::bigint[], :run_parts::integer[], :run_pauseds::boolean[],
    :run_publisheds::bytea[], :run_earlies::boolean[], :run_waits::text[], :run_pauses::smallint[], :run_sources::integer[]
) AS new (num, status, wake_at, losses, held, begun_at, part, paused, published, early, waits, pauses, sources)
WHERE (SELECT whole FROM mine)
    AND run.num = new.num
    AND (1 << run.status) & new.sources <> 0
RETURNING run.num
