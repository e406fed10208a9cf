"""SCHEDULER: decides what happens next, and when. Facts and outcomes enter; turns leave, one transaction each."""
