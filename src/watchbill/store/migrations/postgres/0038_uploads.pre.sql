-- Very large bodies are written in chunks, in transactions of their own, before the turn that refers to them.

-- upload: the chunks of this blob; null when its body is here. size: the bytes of the whole body.
-- A blob without a body must have chunks. Code before this one cannot copy such a blob: the constraint refuses it.
ALTER TABLE watchbill.blob ADD COLUMN upload bigint;
ALTER TABLE watchbill.blob ADD COLUMN size bigint;
ALTER TABLE watchbill.blob ALTER COLUMN body DROP NOT NULL;
ALTER TABLE watchbill.blob ADD CONSTRAINT blob_has_body CHECK (body IS NOT NULL OR upload IS NOT NULL) NOT VALID;

-- Uploads that no turn has taken yet. The turn that refers to an upload deletes its row.
CREATE TABLE watchbill.upload (
    run bigint NOT NULL,
    id bigint NOT NULL,
    shard integer NOT NULL,
    term bigint NOT NULL,
    PRIMARY KEY (run, id)
);

CREATE INDEX upload_shard ON watchbill.upload (shard);

CREATE TABLE watchbill.chunk (
    run bigint NOT NULL,
    upload bigint NOT NULL,
    n integer NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (run, upload, n)
);

ALTER TABLE watchbill.chunk ALTER COLUMN body SET STORAGE EXTERNAL;

-- Chunks are deleted with their blob.
CREATE FUNCTION watchbill.chunks_go() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
    DELETE FROM watchbill.chunk WHERE run = old.run AND upload = old.upload;
    RETURN NULL;
END
$$;

CREATE TRIGGER chunks_go_with_their_blob AFTER DELETE ON watchbill.blob FOR EACH ROW
WHEN (old.upload IS NOT NULL)
EXECUTE FUNCTION watchbill.chunks_go();

-- The blob that a reference stands for, as of the statement that asks; made whole if it is in chunks.
CREATE OR REPLACE FUNCTION watchbill.referred_body(owner bigint, reference bytea) RETURNS bytea LANGUAGE plpgsql STABLE AS
$$
DECLARE
    kept record;
    large bytea;
BEGIN
    SELECT body, upload, size INTO kept FROM watchbill.blob WHERE run = owner AND n = watchbill.referred(reference);
    IF FOUND AND kept.upload IS NULL THEN
        RETURN kept.body;
    END IF;
    IF FOUND THEN
        SELECT coalesce(string_agg(body, ''::bytea ORDER BY n), ''::bytea) INTO large
        FROM watchbill.chunk
        WHERE run = owner AND upload = kept.upload;
        IF octet_length(large) = kept.size THEN
            RETURN large;
        END IF;
    END IF;
    RAISE EXCEPTION 'blob % of run % is missing', watchbill.referred(reference), owner USING ERRCODE = 'WB002';
END
$$;
