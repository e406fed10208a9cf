-- Read how long runs are kept, by workflow and version.
SELECT workflow, version, kept
FROM retention
WHERE namespace = :namespace
