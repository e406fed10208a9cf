-- Keep the last words of a running attempt whose report is accepted; before that, while its number is on account.
INSERT INTO log (run, call, fence, number, at, body)
SELECT run, call, fence, failures + losses, ?4, ?3
FROM attempt
WHERE id = ?1
    AND fence = ?2
    AND state = 1
ON CONFLICT (run, call, fence) DO UPDATE
SET number = excluded.number, at = excluded.at, body = excluded.body
