-- Read the journals of runs, each in the order in which its workflow saw it.
SELECT
    run, seq, kind, key, digest, fence, outcome, agent, started_at, at, watchbill.whole(run, body)
FROM watchbill.journal
WHERE run = ANY (:runs::bigint[])
ORDER BY run, seq
