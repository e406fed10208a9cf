-- Read how long runs are kept, by workflow and version.
SELECT workflow, version, kept
FROM watchbill.retention
WHERE namespace = :namespace
