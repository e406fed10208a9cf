"""What a server refuses with becomes an error that says which store, what was wrong, and what to do."""

import asyncpg
import pytest

from watchbill.errors import (
    StoreCorruptError,
    StoreError,
    StoreReadOnlyError,
    StoreRegionError,
    StoreUnreachableError,
)
from watchbill.store.address import PostgresAddress, parse_url
from watchbill.store.postgres.refusals import BLOB_MISSING, at_opening, at_reconnect, at_run_time


def an_address() -> PostgresAddress:
    address = parse_url("postgresql://me:secret@db/shop").postgres
    assert address is not None
    return address


ADDRESS = an_address()


class SaidError(asyncpg.PostgresError):  # type: ignore[misc] # it has no types
    """A refusal of a server, as the driver raises it."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (SaidError("28P01", "password authentication failed"), StoreError, "check user and password"),
        (SaidError("28000", "no pg_hba.conf entry"), StoreError, "pg_hba.conf admit this user, database and host"),
        (SaidError("28000", "no pg_hba.conf entry, no encryption"), StoreError, "add ?sslmode=require"),
        (SaidError("3D000", "database shop does not exist"), StoreError, "make it first: createdb shop"),
        (SaidError("42501", "permission denied"), StoreError, "GRANT ALL ON SCHEMA"),
        (SaidError("25006", "read-only transaction"), StoreReadOnlyError, "the server is a standby or read-only"),
        (SaidError("53300", "too many connections"), StoreError, "raise max_connections"),
        (SaidError("99999", "odd"), StoreError, "odd; is that the right server?"),
        (TimeoutError(), StoreError, "did not answer within"),
        (ConnectionRefusedError("refused"), StoreError, "refused; is it running, and there?"),
        (OSError("rejected SSL upgrade"), StoreError, "enable ssl on the server"),
    ],
)
def test_refusal_at_opening_says_what_to_do(error: Exception, kind: type[StoreError], said: str) -> None:
    translated = at_opening(error, ADDRESS)
    assert type(translated) is kind
    assert said in str(translated)
    assert "secret" not in str(translated)


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (SaidError("53100", "disk full"), StoreUnreachableError, "its disk is full"),
        (SaidError("57P01", "terminating connection"), StoreUnreachableError, "terminating connection"),
        (SaidError(BLOB_MISSING, "blob 3 is missing"), StoreCorruptError, "blob 3 is missing"),
        (SaidError("42P01", "relation is missing"), StoreError, "GRANT ALL ON ALL TABLES"),
        (SaidError("42501", "violates row-level security policy"), StoreRegionError, "of another region than the role"),
        (ConnectionResetError("reset"), StoreUnreachableError, "did not answer: reset"),
    ],
)
def test_refusal_of_a_statement_is_waited_for_or_named(error: Exception, kind: type[StoreError], said: str) -> None:
    translated = at_run_time(error, ADDRESS)
    assert type(translated) is kind
    assert said in str(translated)


def test_refusal_of_a_new_connection_to_a_program_that_had_one_is_waited_for() -> None:
    for error in (SaidError("28P01", "password authentication failed"), ConnectionRefusedError("refused")):
        assert type(at_reconnect(error, ADDRESS)) is StoreUnreachableError


def test_error_that_is_no_refusal_is_given_back_as_it_is() -> None:
    for error in (ValueError("a bug"), KeyError("another")):
        for translate in (at_opening, at_reconnect, at_run_time):
            assert translate(error, ADDRESS) is error
    refused = StoreError("before")
    assert at_opening(refused, ADDRESS) is refused
