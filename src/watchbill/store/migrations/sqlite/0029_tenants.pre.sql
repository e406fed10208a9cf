-- ahead: the head start of a row by its priority, NULL if it has none. Rows behind different gates take turns, and the
-- wait of a row then counts from the last start behind its gate: its rank alone does not say how urgent it is.
ALTER TABLE attempt ADD COLUMN ahead INTEGER;
