-- What must be undone though its last attempt raised: one before it may have taken effect.

-- unsure: an attempt that is over may have taken effect, and no probe has said that it did not.
ALTER TABLE attempt ADD COLUMN unsure INTEGER NOT NULL DEFAULT 0;

-- Of what failed before this nobody has kept how: perhaps.
UPDATE attempt
SET unsure = 1
WHERE kind <> 1
    AND state < 4
    AND failures + losses + earlier > (state = 1);
