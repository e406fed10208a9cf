-- Make a row that was judged in this transaction be about something else.
UPDATE attempt
SET
    kind = :kind,
    step = :step,
    rung = :rung,
    policy = :policy,
    span = coalesce(:span, span),
    alone = :alone,
    earlier = earlier + :earlier,
    doubt = :doubt,
    checkpoint = CASE WHEN :restart THEN NULL ELSE checkpoint END,
    queue = coalesce(:queue, queue),
    gate = CASE WHEN :queue IS NULL THEN gate ELSE :gate END
WHERE id = :id
