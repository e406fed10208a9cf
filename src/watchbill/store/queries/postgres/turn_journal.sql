-- Append entries; a key that is there already fails the turn.
INSERT INTO watchbill.journal (run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body)
SELECT *
FROM unnest(
    :journal_runs::bigint[], :journal_seqs::integer[], :journal_kinds::smallint[], :journal_keys::text[],
    :journal_digests::bigint[], :journal_fences::bigint[], :journal_outcomes::smallint[], :journal_agents::bigint[],
    :journal_started_ats::bigint[], :journal_ats::bigint[], :journal_bodies::bytea[]
)
WHERE (SELECT whole FROM mine)
