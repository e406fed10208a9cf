"""Refusals: what a server says no with, in the house's words: what, which store, and what to do.

Two moments differ. At opening whoever starts a program wants to hear what is wrong: a clear error. Later whatever ends
by itself, or by an operator's hand, is waited for: `StoreUnreachableError`, and the rooms try again.
"""

import asyncpg

from watchbill.errors import (
    StoreCorruptError,
    StoreError,
    StoreReadOnlyError,
    StoreRegionError,
    StoreUnreachableError,
)
from watchbill.store.address import PostgresAddress

REFUSED = "WB001"  # by watchbill.refuse
BLOB_MISSING = "WB002"

# The whole connection is useless after these, or the server on its other end is not the one that we want.
_DISCONNECTED = ("08", "57P", "25P03", "25006")
# Class 08 connection, 40 rollback (deadlock, serialization), 53 resources (disk, memory, connections), 55P03 lock, 57
# cancelled or shut down, 58 the server's own trouble, 25P03 idle in transaction, 25006 read only (a standby).
_PASSING = ("08", "40", "53", "55P03", "57", "58", "25P03", "25006", "XX000")

_REMEDIES = {
    "53100": "its disk is full: free some space on the server",
    "53300": "it has no connection to spare: raise max_connections, or put a pooler before it (?pooler=transaction)",
    "25006": "it is read-only (a standby?): name the server that can be written",
    "57014": "a statement took too long and was cancelled: is the server overloaded, or a lock held?",
    "55P03": "a lock was not to be had in time",
    "57P03": "it is starting up or shutting down",
}


# The server is there, and refuses to write: its disk is full or fails, it has no memory, it became read-only.
_REFUSING = ("53", "58", "25006")


def refuses_writes(error: BaseException) -> bool:
    """Say whether the server has answered that it does not write for now."""
    return _state(error).startswith(_REFUSING)


def is_contended(error: BaseException) -> bool:
    """Say whether a statement, of whatever driver, was refused because it would have to wait too long for a lock."""
    return _state(error) == "55P03"


def is_lost(error: BaseException) -> bool:
    """Say whether the connection is of no use after this error."""
    if isinstance(error, asyncpg.PostgresError):
        return bool(_state(error).startswith(_DISCONNECTED))
    # The driver's internal error: the server's goodbye has arrived, and nobody has read it yet.
    lost = (OSError, TimeoutError, EOFError, asyncpg.InterfaceError, asyncpg.InternalClientError)
    return isinstance(error, lost) and not isinstance(error, asyncpg.exceptions.DataError)


def took_too_long(error: BaseException) -> bool:
    """Say whether a statement was cancelled for how long it took."""
    return _state(error) == "57014"


def is_spoilt(error: BaseException) -> bool:
    """Say whether a session may be in the middle of something: a value could not be sent of a statement begun by then.

    The driver ends that with nothing, and the server believes that the next statement belongs to it.
    """
    return isinstance(error, asyncpg.DataError)


def at_run_time(error: BaseException, address: PostgresAddress) -> BaseException:
    """Translate what a statement was refused with; anything else is given back as it is."""
    state, shown = _state(error), address.shown
    if state.startswith(_PASSING) or is_lost(error):
        return StoreUnreachableError(f"store {shown!r} did not answer: {_REMEDIES.get(state, _said(error))}")
    if state == BLOB_MISSING:
        return StoreCorruptError(shown, _said(error), "restore a backup, or name another schema to begin anew")
    if state in {"42501", "3F000", "42P01"}:
        return _no_rights(error, address)
    return error


def at_reconnect(error: BaseException, address: PostgresAddress) -> BaseException:
    """Translate why a new connection was refused to a program that had one: all of that may pass."""
    if isinstance(error, asyncpg.PostgresError) or is_lost(error):
        said = _REMEDIES.get(_state(error), _said(error))
        return StoreUnreachableError(f"store {address.shown!r} cannot be reached: {said}")
    return error


def at_opening(error: BaseException, address: PostgresAddress) -> BaseException:
    """Translate why a store could not be opened; anything that is no refusal is given back as it is."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, asyncpg.PostgresError):
        return _refused_by_server(error, address)
    if isinstance(error, TimeoutError):
        return StoreError(
            f"store {address.shown!r} did not answer within {address.connect_timeout:g} s: check host and port,"
            " a firewall, or give it longer (?connect_timeout=)"
        )
    if is_lost(error):
        said = _said(error)
        remedy = "enable ssl on the server, or use sslmode=prefer" if "SSL" in said else "is it running, and there?"
        return StoreError(f"store {address.shown!r} cannot be reached: {said}; {remedy}")
    return error


def _refused_by_server(error: asyncpg.PostgresError, address: PostgresAddress) -> StoreError:
    shown, said = address.shown, _said(error)
    match _state(error):
        case "28P01" | "28000" if "pg_hba.conf" not in said:
            remedy = "check user and password in the address (percent-encoded), PGPASSWORD or ~/.pgpass"
        case "28P01" | "28000":
            remedy = "let the server's pg_hba.conf admit this user, database and host"
            if "no encryption" in said:
                remedy += "; if it wants TLS, add ?sslmode=require to the address"
        case "3D000":
            remedy = f"make it first: createdb {address.database or ''}".rstrip()
        case "42501" | "3F000" | "42P01":
            return _no_rights(error, address)
        case "25006":
            return read_only(address)
        case state:
            remedy = _REMEDIES.get(state, "is that the right server?")
    return StoreError(f"store {shown!r} refused us: {said}; {remedy}")


def read_only(address: PostgresAddress) -> StoreReadOnlyError:
    """Say that the server takes no writes."""
    return StoreReadOnlyError(
        address.shown, "the server is a standby or read-only", "name the one that can be written, or promote it"
    )


def too_old(address: PostgresAddress, version: int, oldest: int) -> StoreError:
    """Say that the server is too old."""
    return StoreError(
        f"store {address.shown!r} is PostgreSQL {version // 10_000}, Watchbill needs {oldest} or newer:"
        " upgrade the server, or name another"
    )


def _no_rights(error: BaseException, address: PostgresAddress) -> StoreError:
    schema = address.schema
    if "row-level security" in _said(error):
        return StoreRegionError(
            address.shown,
            f"{_said(error)}: it is of another region than the role that this process connects as, or is to be moved to"
            " another one, which only the owner of the tables can do",
        )
    return StoreError(
        f"store {address.shown!r}: {_said(error)}; let somebody with the right to do so say:"
        f' CREATE SCHEMA IF NOT EXISTS "{schema}"; GRANT ALL ON SCHEMA "{schema}" TO our user;'
        f' GRANT ALL ON ALL TABLES IN SCHEMA "{schema}" TO our user; GRANT ALL ON ALL SEQUENCES IN SCHEMA "{schema}"'
        " TO our user"
    )


def _said(error: BaseException) -> str:
    text = str(getattr(error, "message", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _state(error: BaseException) -> str:
    return str(getattr(error, "sqlstate", None) or "")
