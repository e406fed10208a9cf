-- Say how the file makes commits durable.
PRAGMA journal_mode
