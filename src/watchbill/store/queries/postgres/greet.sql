-- Recognise the server, and have commits of this session survive it: as the address says, or if that says nothing, by
-- the server's own setting, unless that is weaker than the disk of the server and of its synchronous standbys.
SELECT
    watchbill.recognise(),
    set_config(
        'synchronous_commit',
        coalesce(
            :commit::text,
            CASE
                WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN 'on'
                ELSE current_setting('synchronous_commit')
            END
        ),
        false
    )
