-- listens: whether the process of a scheduler has a connection on which it hears hints. False: it polls once a second.
ALTER TABLE watchbill.scheduler ADD COLUMN listens boolean NOT NULL DEFAULT true;
