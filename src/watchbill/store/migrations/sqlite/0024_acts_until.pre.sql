-- What must not be undone yet: an attempt that was taken from its agent may still act.

-- acts_until: until then; NULL: none of its attempts was taken away.
ALTER TABLE attempt ADD COLUMN acts_until INTEGER;
