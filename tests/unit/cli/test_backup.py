"""The command that backs up a store on PostgreSQL."""

import shlex

import pytest

from watchbill.cli.backup import advice
from watchbill.store.address import parse_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://me:secret@db/shop", "host=db user=me dbname=shop"),
        ("postgresql://me@db:5433/shop?sslmode=require", "host=db port=5433 user=me dbname=shop sslmode=require"),
        ("postgresql://me%20too:it%27s@db/a%27b", r"host=db user='me too' dbname='a\'b'"),
        ("postgresql://me@a:1,b:2/shop", "host=a,b port=1,2 target_session_attrs=read-write user=me dbname=shop"),
        ("postgresql:///shop?host=/run/pg", "host=/run/pg dbname=shop"),
    ],
)
def test_advice_is_a_command_without_the_password(url: str, expected: str) -> None:
    address = parse_url(url).postgres
    assert address is not None
    said = advice(address, "a file")
    command = shlex.split(said.splitlines()[0].rpartition("back it up: ")[2])
    assert command == [
        "pg_dump", "--format=custom", "--schema=watchbill", "--file=a file", f"--dbname={expected}"
    ]  # fmt: skip
    assert "secret" not in said
