-- Record the schema, in the transaction that made it.
INSERT INTO watchbill.meta (key, value)
VALUES ('schema', :schema)
ON CONFLICT (key) DO UPDATE SET value = excluded.value
