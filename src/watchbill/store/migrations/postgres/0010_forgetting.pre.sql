-- What was resolved long ago is found to be forgotten, and gates that are paused without looking at all of them.
CREATE INDEX incident_resolved ON watchbill.incident (resolved_at) WHERE state = 1;
CREATE INDEX gate_paused ON watchbill.gate (namespace, name) WHERE paused;
