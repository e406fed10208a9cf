-- Say what the server is, how it makes commits durable, and what time it is there.
SELECT
    current_setting('server_version'),
    current_setting('synchronous_commit'),
    (SELECT watchbill.at(:now::bigint))
