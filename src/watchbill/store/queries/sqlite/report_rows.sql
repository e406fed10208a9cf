-- Read under which fence rows are, where, whether cancelled, and whose.
SELECT attempt.id, fence, state, cancel, run
FROM json_each(:ids) AS reported
CROSS JOIN attempt ON attempt.id = reported.value
