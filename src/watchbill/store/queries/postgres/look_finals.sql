-- Read rows that were found final, in order: as many as fit in so many bytes, and of each run in its share of them.
-- `small`: the look has found that all of them fit, which is so most often. Then no row is compared with the others.
SELECT
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
    started_at, ended_at, watch_at, progress_at, progress, watchbill.whole(run, checkpoint), policy,
    watchbill.whole(run, args), watchbill.whole(run, result), kind, held, symptom, earlier, doubt, unsure, acts_until
FROM watchbill.attempt
WHERE id = ANY (:ids::bigint[])
    AND state >= :final::smallint
    AND (
        :small::boolean
        OR id IN (
            SELECT final.id
            FROM (
                SELECT shared.*, sum(size) OVER (ORDER BY id) - size AS size_before
                FROM (
                    SELECT sized.*, sum(size) OVER (PARTITION BY run ORDER BY id) - size AS of_run_before
                    FROM (
                        SELECT attempt.*,
                            coalesce(CASE
                            WHEN octet_length(attempt.result) < 22 AND substr(attempt.result, 1, 1) = '\x00' THEN (
                                SELECT coalesce(blob.size, octet_length(blob.body))
                                FROM watchbill.blob
                                WHERE blob.run = attempt.run
                                    AND blob.n = watchbill.referred(attempt.result)
                            )
                            ELSE octet_length(attempt.result)
                        END, 0) + CASE
                            WHEN octet_length(attempt.args) < 22 AND substr(attempt.args, 1, 1) = '\x00' THEN (
                                SELECT coalesce(blob.size, octet_length(blob.body))
                                FROM watchbill.blob
                                WHERE blob.run = attempt.run
                                    AND blob.n = watchbill.referred(attempt.args)
                            )
                            ELSE octet_length(attempt.args)
                        END AS size
                        FROM watchbill.attempt
                        WHERE id = ANY (:ids::bigint[])
                            AND state >= :final::smallint
                    ) AS sized
                ) AS shared
                WHERE of_run_before < :most_of_run::bigint
            ) AS final
            WHERE size_before < :most::bigint
        )
    )
ORDER BY id
