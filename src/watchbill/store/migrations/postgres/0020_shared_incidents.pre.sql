-- Regions write about their own runs alone: when the schema becomes this one, roles get their policies anew.

-- shared: it quotes nothing, and is everybody's as soon as regions have roles; until then all incidents are the owner's.
ALTER TABLE watchbill.incident ADD COLUMN shared boolean NOT NULL DEFAULT false;
