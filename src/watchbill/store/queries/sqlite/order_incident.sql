-- Write down what somebody wants for all members of an open incident, unless another order is being carried out.
UPDATE incident
SET
    ordered = :body, ordered_by = :actor, ordered_at = :now, per_second = :per_second, fed_at = NULL, fed_to = 0,
    ordered_as = :kind, order_no = :number
WHERE id = :incident
    AND state = 0
    AND CASE WHEN :failed THEN failed WHEN :kind = 'resolve' THEN calls ELSE runs END
    AND ordered IS NULL
