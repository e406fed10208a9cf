-- Count what the file defines: an empty database may become a store, any other must be one.
SELECT count(*)
FROM sqlite_master
