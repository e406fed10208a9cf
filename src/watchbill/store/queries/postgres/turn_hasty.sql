-- Let this commit not wait for the disk: what it names must survive our process, not the server.
SELECT set_config('synchronous_commit', 'off', true)
