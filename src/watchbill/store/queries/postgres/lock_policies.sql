-- Let one order after the other be given and applied: each sees all that were before it. Whoever only reads goes on.
LOCK TABLE watchbill.policy IN SHARE ROW EXCLUSIVE MODE
