-- Write down what a person ordered; of what all regions share, for all of them.
INSERT INTO watchbill.logbook (namespace, at, kind, name, act, by, reason, detail, region)
VALUES (
    :namespace, (SELECT watchbill.at(:now::bigint)), :kind::text, :name::text, :act::text, :by::text, :reason::text,
    :detail::text, CASE WHEN :kind::text IN ('gate', 'policy') THEN '*' ELSE watchbill.own_region() END
)
