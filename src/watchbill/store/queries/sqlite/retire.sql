-- End one scheduler's attendance.
DELETE FROM scheduler
WHERE id = :owner
