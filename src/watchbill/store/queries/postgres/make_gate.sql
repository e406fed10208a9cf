-- Make a gate without a limit, unless it is there.
INSERT INTO watchbill.gate (namespace, name, tokens, tokens_at, said)
VALUES (:namespace, :name, 0, (SELECT watchbill.at(:now::bigint)), 0)
ON CONFLICT (namespace, name) DO NOTHING
