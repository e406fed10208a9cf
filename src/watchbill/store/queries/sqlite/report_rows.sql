-- Read under which fence rows are, where, whether cancelled, whose, and behind which gate.
SELECT attempt.id, fence, state, cancel, run, gate
FROM json_each(:ids) AS reported
CROSS JOIN attempt ON attempt.id = reported.value
