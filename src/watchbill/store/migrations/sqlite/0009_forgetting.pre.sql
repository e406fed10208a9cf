-- What was resolved long ago is found to be forgotten.
CREATE INDEX incident_resolved ON incident (resolved_at) WHERE state = 1;
