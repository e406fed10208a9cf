-- listens: whether the process of a supervisor has a connection on which it hears hints. False: it polls once a second.
ALTER TABLE watchbill.supervisor ADD COLUMN listens boolean NOT NULL DEFAULT true;
