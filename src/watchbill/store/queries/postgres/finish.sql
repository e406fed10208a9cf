-- Record a result in a user's transaction: only while the row runs under this fence.
-- The row is locked until they commit, so a process that freezes before that must not be waited for: `within`.
WITH recorded AS (
    UPDATE watchbill.attempt
    SET
        state = 4, losses = losses - 1, ended_at = (SELECT watchbill.at(:now::bigint)), watch_at = NULL,
        result = CASE
            WHEN octet_length(:body::bytea) > :inline_limit::integer THEN :reference::bytea
            ELSE :body::bytea
        END
    WHERE id = :id::bigint
        AND fence = :fence::bigint
        AND state = :running::smallint
    RETURNING id, run
),
kept AS (
    INSERT INTO watchbill.blob (run, n, body)
    SELECT run, :n::bigint, :body::bytea
    FROM recorded
    WHERE octet_length(:body::bytea) > :inline_limit::integer
)
SELECT
    id,
    set_config(
        'idle_in_transaction_session_timeout',
        CASE
            WHEN current_setting('idle_in_transaction_session_timeout')::interval
                BETWEEN interval '1ms' AND :within::text::interval
                THEN current_setting('idle_in_transaction_session_timeout')
            ELSE :within::text
        END,
        true
    )
FROM recorded
