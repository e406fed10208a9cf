-- Say whose file it is, and whether it can say which schema it has.
SELECT
    application_id,
    EXISTS (
        SELECT 1
        FROM sqlite_master
        WHERE name = 'meta'
    )
FROM pragma_application_id
