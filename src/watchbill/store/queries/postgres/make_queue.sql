-- Make the queue of one set of needs once.
INSERT INTO watchbill.queue (namespace, region, needs, uses, limited)
VALUES (:namespace, :region, :needs, :uses, :limited)
ON CONFLICT DO NOTHING
