-- Say what time it is.
SELECT (SELECT watchbill.at(:now::bigint))
