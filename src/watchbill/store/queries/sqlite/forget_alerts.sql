-- Forget the alerts of an incident that is forgotten.
DELETE FROM alert
WHERE incident = ?1
