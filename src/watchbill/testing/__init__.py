"""TESTING: the house in virtual worlds. Workflows, stores and seeds enter; results, crashes and violations leave."""
