-- Say whether an agent that is there says that threads of it run on that nobody waits for.
SELECT EXISTS (
    SELECT 1
    FROM agent
    WHERE state = 1
        AND until > :now
        AND substr(said, 1, length(:says_so)) = :says_so
)
