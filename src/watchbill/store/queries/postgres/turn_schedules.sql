-- Decide about slots: only as whoever decided has read them, so not when somebody has paused them since; only forward.
UPDATE watchbill.schedule
SET
    rev = schedule.rev + 1, last_slot = new.last_slot, wake_at = new.wake_at,
    waiting = string_to_array(new.waiting, ',')::bigint[], last_run = coalesce(new.last_run, schedule.last_run)
FROM unnest(
    :schedule_namespaces::text[], :schedule_names::text[], :schedule_revs::bigint[], :schedule_last_slots::bigint[],
    :schedule_wake_ats::bigint[], :schedule_waitings::text[], :schedule_last_runs::bigint[]
) AS new (namespace, name, rev, last_slot, wake_at, waiting, last_run)
WHERE (SELECT whole FROM mine)
    AND schedule.namespace = new.namespace
    AND schedule.name = new.name
    AND schedule.rev = new.rev
    AND schedule.last_slot <= new.last_slot
RETURNING schedule.namespace, schedule.name
