-- Say which file a user's connection leads to.
SELECT file
FROM pragma_database_list
WHERE name = 'main'
