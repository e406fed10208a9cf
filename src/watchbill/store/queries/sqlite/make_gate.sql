-- Make a gate without a limit, unless it is there.
INSERT INTO gate (namespace, name, tokens, tokens_at, said)
VALUES (:namespace, :name, 0, :now, 0)
ON CONFLICT (namespace, name) DO NOTHING
