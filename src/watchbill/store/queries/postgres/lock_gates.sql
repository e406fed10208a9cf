-- Lock gates for a lease by an agent that is alive, in time and wanted: in the order of their names, so that nobody waits for
-- whom he keeps waiting. A gate that is new is made, full; a newer policy than the last one says what is allowed.
WITH me AS MATERIALIZED (
    SELECT id, namespace
    FROM watchbill.agent
    WHERE id = :agent
        AND state = 1
        AND until > (SELECT watchbill.at(:now::bigint))
        AND wish = 0
        AND (suspension IS NOT NULL) = :suspended::boolean
    FOR SHARE
),
locked AS (
    INSERT INTO watchbill.gate AS gate (namespace, name, at_once, starts, per, tokens, tokens_at, said)
    SELECT offer.namespace, offer.name, at_once, starts, per, burst, (SELECT watchbill.at(:now::bigint)), said
    FROM unnest(
        :namespaces::text[], :names::text[], :at_onces::integer[], :starts::integer[], :pers::bigint[],
        :bursts::double precision[], :saids::bigint[]
    ) AS offer (namespace, name, at_once, starts, per, burst, said)
    WHERE EXISTS (SELECT 1 FROM me)
    ORDER BY offer.namespace COLLATE "C", offer.name COLLATE "C"
    -- Also a row that is not changed is locked by this.
    ON CONFLICT (namespace, name) DO UPDATE
    SET at_once = excluded.at_once, starts = excluded.starts, per = excluded.per, said = excluded.said
    WHERE gate.said < excluded.said
        AND (gate.at_once, gate.starts, gate.per) IS DISTINCT FROM (excluded.at_once, excluded.starts, excluded.per)
)
SELECT
    EXISTS (SELECT 1 FROM me),
    -- Whether the namespace has a quota of attempts, from the index that has what is stopped alone.
    EXISTS (
        SELECT 1
        FROM watchbill.gate AS quota
        WHERE quota.namespace || '' = (SELECT me.namespace FROM me)
            AND quota.name || '' = 'quota.attempts'
            AND (quota.paused OR quota.state <> 0)
    )
