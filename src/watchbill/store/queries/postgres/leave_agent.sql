-- Mark an agent as gone in peace; one that was lost stays lost.
UPDATE watchbill.agent
SET state = 3, until = (SELECT watchbill.at(:now::bigint)), gone_at = (SELECT watchbill.at(:now::bigint))
WHERE id = :agent
    AND state = 1
