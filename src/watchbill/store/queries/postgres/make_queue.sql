-- Make the queue of one set of needs once.
INSERT INTO watchbill.queue (namespace, region, needs, uses)
VALUES (:namespace, :region, :needs, :uses)
ON CONFLICT DO NOTHING
