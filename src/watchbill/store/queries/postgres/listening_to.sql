-- Read whether this session listens to a channel.
SELECT 1
FROM pg_listening_channels() AS listened (channel)
WHERE channel = :channel::text
