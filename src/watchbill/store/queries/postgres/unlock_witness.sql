-- Let go of the lock of an agent.
SELECT pg_advisory_unlock_shared(watchbill.witness_lock(:agent::bigint))
