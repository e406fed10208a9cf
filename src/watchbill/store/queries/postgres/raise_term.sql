-- Raise the term above every one that was drawn before the store was restored; the server's time is the floor.
SELECT setval(
    'watchbill.term',
    greatest(
        (SELECT last_value FROM watchbill.term) + :least::bigint,
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint >> 10
    )
)
