"""What failures that are alike have in common."""

import pytest

from watchbill.model.fingerprint import LONGEST, blotted, fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 17 failed", "order 4711 failed"),
        ("took 1.5 s, limit 30", "took 2.25 s, limit 40"),
        ("user 'ada' is not there", "user 'bob o\\'neill' is not there"),
        ('key "a b" missing', 'key "c" missing'),
        ("no file /tmp/a/b.txt", "no file /var/spool/c"),
        ("no file C:\\a\\b.txt", "no file D:\\x\\y.txt"),
        ("GET https://x.example/a?b=1 failed", "GET http://y.example failed"),
        ("request 123e4567-e89b-12d3-a456-426614174000 lost", "request 00000000-0000-4000-8000-00000000000a lost"),
        ("object at 0x7f3a", "object at 0xffff01"),
        ("commit deadbeef01 is not there", "commit 0a1b2c3d4e is not there"),
        ("vm i-0abc12 is gone", "vm i-9fff77 is gone"),
        ("order_17 and user7x", "order_9 and user12y"),
        ("two  lines\nof it 1", "two lines of it 2"),
        ("at 2026-06-01T12:00:00Z", "at 2027-01-31T23:59:59Z"),
        ("-5 is below zero", "-17.5 is below zero"),
    ],
)
def test_messages_that_differ_in_values_alone_are_alike(one: str, other: str) -> None:
    assert blotted(one) == blotted(other)
    assert fingerprint("s", "escalate", "E", one) == fingerprint("s", "escalate", "E", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 17 failed", "order 17 was refused"),
        ("connection refused", "connection reset"),
        ("it can't be read", "it can't be written"),
        ("user's file", "user's folder"),
    ],
)
def test_messages_that_say_something_else_are_not(one: str, other: str) -> None:
    assert blotted(one) != blotted(other)


def test_the_step_the_reason_the_type_and_the_group_count() -> None:
    base = ("encode", "escalate", "OSError", "no space", "team")
    others = [(*base[:place], "other", *base[place + 1 :]) for place in range(5)]
    assert len({fingerprint(*values) for values in (base, *others)}) == 6


def test_it_is_the_same_in_every_process() -> None:
    assert fingerprint("encode", "quarantine", "Lost", "agent 17 died") == "e3b7c88a4dc4"


def test_a_page_is_not_read_to_its_end() -> None:
    assert blotted("x" * LONGEST + " one") == blotted("x" * LONGEST + " other")
    assert blotted("\udcff lone") == "\udcff lone"
    assert fingerprint("s", "w", "t", "\udcff")
