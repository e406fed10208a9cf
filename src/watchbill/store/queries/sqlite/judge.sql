-- Apply a verdict if its evidence still holds: fence, state, progress, policy, and the death of the agent if it says so.
-- What runs on is looked at again, if nobody has asked it to stop meanwhile: that is looked at sooner.
-- What its run wants no more since is not moved as if it did.
-- What is parked is moved when its time is over: then by nobody who decided meanwhile, for that takes the time away.
-- What becomes ready is kept from the agent that had it, for a while, if another one could do it by what it has.
UPDATE attempt
SET
    state = :after,
    failures = failures + :failures,
    losses = losses + :losses,
    rank = CASE WHEN :last THEN max(rank, :now) ELSE rank END,
    watch_at = :now + :watch_in,
    remind_at = NULL,
    why = :why,
    incident = NULL,
    claimed_by = NULL,
    avoid = CASE
        WHEN :after <> 0 THEN avoid
        WHEN EXISTS (
            SELECT 1
            FROM queue
            CROSS JOIN agent AS other ON other.namespace = queue.namespace AND other.region = queue.region
            WHERE queue.id = attempt.queue
                AND other.state = 1
                AND other.until > :now
                AND other.wish = 0
                AND other.suspension IS NULL
                AND other.id <> attempt.agent
                AND NOT EXISTS (
                    SELECT 1
                    FROM json_each(queue.needs) AS need
                    WHERE substr(need.value, 1, instr(need.value || '=', '=') - 1) NOT IN (
                        SELECT substr(had.value, 1, instr(had.value || '=', '=') - 1)
                        FROM json_each(other.needs) AS had
                    )
                )
        ) THEN agent
    END,
    avoid_until = CASE WHEN :after <> 0 THEN avoid_until ELSE :now + :avoid_for END,
    result = coalesce(:result, result),
    unsure = coalesce(:unsure, unsure),
    acts_until = CASE WHEN :acts_in IS NULL THEN acts_until ELSE max(coalesce(acts_until, 0), :now + :acts_in) END,
    ended_at = CASE WHEN state = 1 AND :after <> 1 THEN :now ELSE ended_at END
WHERE id = :id
    AND fence = :fence
    AND state = :state
    AND progress_at IS :progress_at
    AND (NOT :unmoved OR progress IS :progress)
    AND (:policy IS NULL OR policy = :policy)
    AND CASE state
        WHEN 1 THEN :after = 2 OR (:after = 1 AND cancel = :cancel AND (cancel OR :watch_in IS NOT NULL))
        WHEN 2 THEN :after IN (0, 3, 5) AND cancel = :cancel
        WHEN 3 THEN watch_at = :watch_at
            AND cancel = :cancel
            AND watch_at <= :now
            AND CASE why
                WHEN 'settle' THEN :after IN (0, 5)
                WHEN 'escalate' THEN :after IN (0, 3, 5)
                WHEN 'doubt' THEN :after IN (0, 3, 5)
                ELSE :after = 0
            END
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
RETURNING state = 0 AND avoid IS NOT NULL
