"""FLOW: what authors write and what runs it: steps, workflows, values, the workflow's loop, one attempt."""
