-- Read under which fence rows are, where, whether cancelled, whose, behind which gate, in which queue, why, and which call.
SELECT attempt.id, fence, state, cancel, run, gate, queue, agent, why, call
FROM json_each(:ids) AS reported
CROSS JOIN attempt ON attempt.id = reported.value
