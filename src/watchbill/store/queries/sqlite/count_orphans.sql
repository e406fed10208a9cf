-- Count orphans of a kind.
INSERT INTO orphan (kind, found, last_at)
VALUES (:kind, :count, :now)
ON CONFLICT (kind) DO UPDATE SET found = found + excluded.found, last_at = excluded.last_at
