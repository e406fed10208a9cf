"""AGENT: leases attempts, executes them, tells the truth about them. Rows enter; reports leave, under their fence."""
