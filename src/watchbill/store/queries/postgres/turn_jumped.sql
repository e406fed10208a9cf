-- Count a jump: urgent calls become ready at a place that agents may have passed.
-- The transaction has its number first: agents wait until all transactions up to a number have ended.
SELECT pg_current_xact_id() IS NOT NULL AS numbered, nextval('watchbill.jump') AS jump
