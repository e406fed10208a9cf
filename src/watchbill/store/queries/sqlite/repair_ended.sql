-- Delete a row, as it was seen, whose run has ended or is not there.
DELETE FROM attempt
WHERE id = :id
    AND fence = :fence
    AND state = :state
    AND coalesce((SELECT run.status FROM run WHERE run.num = attempt.run), 10) >= 10
