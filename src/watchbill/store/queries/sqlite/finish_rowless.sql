-- Insert the row of a rowless attempt as done, in a user's transaction: under its scheduler's term, and only once.
INSERT INTO attempt (
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, alone, span, rank, started_at, ended_at,
    policy, args, result
)
SELECT
    :id, :run, :run_id, :part, :shard, :call, :step, :queue, 4, :fence, :agent, :alone, :span, :now,
    :now - :started_ago, :now, :policy, :args,
    CASE WHEN length(:body) > :inline_limit THEN :reference ELSE :body END
FROM lease
WHERE role = 'scheduler'
    AND lease.shard = :shard
    AND owner = :owner
    AND term = :term
    AND NOT EXISTS (
        SELECT 1
        FROM journal
        WHERE journal.run = :run
            AND key = :call
            AND kind = 0
    )
    AND NOT EXISTS (
        SELECT 1
        FROM attempt AS other
        WHERE other.run = :run
            AND other.call = :call
    )
RETURNING id
