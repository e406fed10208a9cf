-- Wake those in other processes whom commits may concern; it need not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true), pg_notify(:channel, :rooms)
