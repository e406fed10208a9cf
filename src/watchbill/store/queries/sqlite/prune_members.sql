-- Forget schedulers that are out of time; not those that still hold a shard: a neighbour may prove their death.
DELETE FROM scheduler
WHERE until <= :now
    AND NOT EXISTS (
        SELECT 1
        FROM lease
        WHERE lease.owner = scheduler.id
    )
