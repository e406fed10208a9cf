"""SUPERVISOR: looks for trouble, decides the cure, writes down why. Rows that are due enter; verdicts leave."""
