-- Write a stat, whether it is there or not.
INSERT INTO stat (namespace, step, rung, sketch, at)
VALUES (:namespace, :step, :rung, :sketch, :now)
ON CONFLICT (namespace, step, rung) DO UPDATE
SET sketch = excluded.sketch, at = excluded.at
