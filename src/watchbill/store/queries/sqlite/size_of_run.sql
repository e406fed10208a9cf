-- Give how many bytes the arguments and the large bodies of a run have, and what it has been told.
SELECT
    coalesce((SELECT length(input) FROM run WHERE num = :run), 0)
    + coalesce((SELECT sum(coalesce(size, length(body))) FROM blob WHERE run = :run), 0)
    + coalesce((SELECT sum(length(body)) FROM fact WHERE run = :run), 0)
