-- Say whether there is any schedule.
SELECT max(id) IS NOT NULL
FROM schedule
