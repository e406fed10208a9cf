-- Say what the server is, and how it makes commits durable.
SELECT current_setting('server_version'), current_setting('synchronous_commit')
