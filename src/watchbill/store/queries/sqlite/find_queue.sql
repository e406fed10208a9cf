-- Give the queue of one set of needs.
SELECT id
FROM queue
WHERE namespace = :namespace
    AND region = :region
    AND needs = :needs
    AND uses = :uses
    AND limited = :limited
