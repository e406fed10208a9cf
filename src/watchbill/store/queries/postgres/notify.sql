-- Wake those in other processes whom commits may concern.
SELECT pg_notify(:channel, :rooms)
