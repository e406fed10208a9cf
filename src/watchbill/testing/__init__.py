"""TESTING: the house in a simulated world. Seeds and the real rooms enter; traces, counts and violations leave."""
