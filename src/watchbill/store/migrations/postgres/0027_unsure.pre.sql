-- What must be undone though its last attempt raised: one before it may have taken effect.

-- unsure: an attempt that is over may have taken effect, and no probe has said that it did not.
ALTER TABLE watchbill.attempt ADD COLUMN unsure boolean NOT NULL DEFAULT false;

-- Of what failed before this nobody has kept how: perhaps.
UPDATE watchbill.attempt
SET unsure = true
WHERE kind <> 1
    AND state < 4
    AND failures + losses + earlier > (state = 1)::integer;
