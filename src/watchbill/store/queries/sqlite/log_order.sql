-- Write down what a person ordered.
INSERT INTO logbook (namespace, at, kind, name, act, by, reason, detail)
VALUES (:namespace, :now, :kind, :name, :act, :by, :reason, :detail)
