-- Let one process at a time migrate this store; the lock ends with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('watchbill migration of ' || :schema, 0))
