-- Say what the server is, how it makes commits durable, and how many standbys it has.
SELECT
    current_setting('server_version'),
    (SELECT reset_val FROM pg_catalog.pg_settings WHERE name = 'synchronous_commit'),
    current_setting('fsync')::boolean,
    current_setting('synchronous_standby_names') <> '', (SELECT count(*) FROM pg_catalog.pg_stat_replication)
