-- Find the queues whose needs are all among those that the agent meets.
SELECT id
FROM watchbill.queue
WHERE namespace = :namespace
    AND region = :region
    AND needs <@ :needs::text[]
ORDER BY id
