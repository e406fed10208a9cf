-- Hold a lock for each of these agents until the session ends, without waiting for anybody; says which are held.
SELECT id, pg_try_advisory_lock_shared(watchbill.witness_lock(id))
FROM unnest(:agents::bigint[]) AS mine (id)
