-- Agents say how what they did has ended of late; one that fails where others succeed is suspended.

-- doings: what it said; suspension: why it gets no work but what it is tried with, NULL for nearly all;
-- judged_from: what it did before that is forgiven.
ALTER TABLE watchbill.agent
    ADD COLUMN doings bytea NOT NULL DEFAULT '',
    ADD COLUMN suspension bytea,
    ADD COLUMN judged_from bigint NOT NULL DEFAULT 0;
