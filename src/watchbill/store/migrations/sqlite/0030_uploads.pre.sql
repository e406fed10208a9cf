-- Very large bodies are written in chunks, in transactions of their own, before the turn that refers to them.

-- upload: the chunks of this blob; null when its body is here. size: the bytes of the whole body.
ALTER TABLE blob ADD COLUMN upload INTEGER;
ALTER TABLE blob ADD COLUMN size INTEGER;

-- Uploads that no turn has taken yet. The turn that refers to an upload deletes its row.
CREATE TABLE upload (
    run INTEGER NOT NULL,
    id INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    term INTEGER NOT NULL,
    PRIMARY KEY (run, id)
) STRICT;

CREATE INDEX upload_shard ON upload (shard);

CREATE TABLE chunk (
    run INTEGER NOT NULL,
    upload INTEGER NOT NULL,
    n INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, upload, n)
) STRICT;

-- Chunks are deleted with their blob.
CREATE TRIGGER chunks_go_with_their_blob AFTER DELETE ON blob
WHEN old.upload IS NOT NULL
BEGIN
    DELETE FROM chunk WHERE run = old.run AND upload = old.upload;
END;
