-- Apply a verdict if its evidence still holds: fence, state, progress, and the death of the agent if it says so.
-- What runs on is looked at again without a reason; only what was asked to stop is left to itself, with one.
UPDATE attempt
SET
    state = :after,
    failures = failures + :failures,
    losses = losses + :losses,
    watch_at = :now + :watch_in,
    why = :why,
    result = coalesce(:result, result),
    alone = alone OR :alone IS NOT NULL,
    policy = coalesce(:alone, policy),
    ended_at = CASE WHEN state = 1 AND :after <> 1 THEN :now ELSE ended_at END
WHERE id = :id
    AND fence = :fence
    AND state = :state
    AND progress_at IS :progress_at
    AND (NOT :unmoved OR progress IS :progress)
    AND CASE state
        WHEN 1 THEN :after = 2 OR (:after = 1 AND cancel = (:body IS NOT NULL))
        WHEN 2 THEN :after IN (0, 3, 5)
        WHEN 3 THEN :after = 0
    END
    AND (
        :dead_agent IS NULL
        OR (
            agent = :dead_agent
            AND NOT EXISTS (
                SELECT 1
                FROM agent AS judged
                WHERE judged.id = :dead_agent
                    AND judged.state = 1
                    AND judged.until > :now
            )
        )
    )
