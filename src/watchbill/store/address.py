"""Address: what a store's URL says. Whatever is shown of one never has a password in it."""

import difflib
import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec

from watchbill.errors import StoreUrlError

DEFAULT_SCHEMA: Final = "watchbill"  # our tables have short names: they do not belong among a program's own
DEFAULT_PORT: Final = 5432
CONNECT_TIMEOUT: Final = 10.0  # seconds; a server that takes longer is not there

_POSTGRES = frozenset({"postgresql", "postgres"})
_TLS = frozenset({"sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl"})
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_COMMITS = ("on", "off", "local", "remote_write", "remote_apply")
_OPTIONS = _TLS | {"host", "schema", "connect_timeout", "pooler", "synchronous_commit"}
_SCHEMA = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,47}\Z")
_ENCODE = "percent-encode what is special in a user name or password: @ as %40, / as %2F, # as %23, ? as %3F, : as %3A"


class PostgresAddress(msgspec.Struct, frozen=True):
    """Where a store on PostgreSQL is; what is not given comes from the PG* variables and ~/.pgpass, as usual."""

    shown: str  # the URL without its password
    host: str | None
    port: int | None
    user: str | None
    password: str | None
    database: str | None
    schema: str
    tls: tuple[tuple[str, str], ...]  # the ssl* options, as they were given
    connect_timeout: float
    pooled: bool  # behind a pooler that lends connections for one transaction at a time
    commit: str | None = None  # synchronous_commit, if the address names it
    servers: tuple[tuple[str, int], ...] = ()  # if there are several: the one that can be written is the store's

    @property
    def forgetful(self) -> bool:
        """True if turns are answered before they are on the server's disk: the address asks for that by name."""
        return self.commit == "off"

    def __repr__(self) -> str:
        return f"PostgresAddress({self.shown!r})"


class StoreAddress(msgspec.Struct, frozen=True):
    """Where a store is: a file, a database on PostgreSQL, or without both in memory: it ends with its process."""

    url: str  # as it may be shown
    path: Path | None
    postgres: PostgresAddress | None = None


@functools.lru_cache(maxsize=16)  # clients ask at every start
def parse_url(url: str) -> StoreAddress:
    """Read an address; raises StoreUrlError, which says how to write it."""
    if "\0" in url:
        raise StoreUrlError(redacted(url), "an address is text without NUL characters")
    scheme, colon, rest = url.partition(":")
    if scheme in _POSTGRES and colon:
        address = _parse_postgres(url)
        return StoreAddress(address.shown, None, address)
    if scheme != "sqlite" or not colon:
        guess = f"did you mean {'sqlite:///' + url!r}?" if "://" not in url and url else "it names no kind of store"
        raise StoreUrlError(redacted(url), guess)
    if not rest.startswith("///"):
        raise StoreUrlError(
            url, f"three slashes come before the file: did you mean {'sqlite:///' + rest.lstrip('/')!r}?"
        )
    name = rest.removeprefix("///")
    if name == ":memory:":
        return StoreAddress(url, None)
    if not name or name.endswith("/"):
        raise StoreUrlError(url, "it names no file")
    if "?" in name:
        raise StoreUrlError(url, "nothing may follow a '?': a store in a file has no options in its address")
    return StoreAddress(url, Path(name))


def is_memory(url: str) -> bool:
    """Say whether the store is in memory, and ends with the object that opened it."""
    address = parse_url(url)
    return address.path is None and address.postgres is None


def is_file(url: str) -> bool:
    """Say whether the store is a file, which one process at a time can own."""
    return parse_url(url).path is not None


def redacted(url: str) -> str:
    """Give an address as it may be shown: all that might be a password is left out, also of one that is wrong."""
    scheme, colon, rest = url.partition("://")
    if scheme == "sqlite" or not colon:
        return url
    credentials, at, place = rest.rpartition("@")
    if not at:
        # Without an @ nothing can be a password, unless the address is wrong.
        plain = re.fullmatch(r"[^:#@]*(:\d+)?(,[^:#@/]*(:\d+)?)*(/[^:#@]*)?", rest)
        return url if plain and "password" not in url else f"{scheme}://***"
    user, colon, _ = credentials.partition(":")
    if not re.fullmatch(r"[^/?#@]*", user) or "password" in place:
        return f"{scheme}://***"
    return f"{scheme}://{user}{':***' if colon else ''}@{place}"


def _parse_postgres(url: str) -> PostgresAddress:
    shown = redacted(url)
    names = _named_servers(url)
    splits = [_split(url.replace(",".join(names), name, 1) if names else url, shown) for name in names or [""]]
    parts = splits[0]
    options = _options(parts, shown)
    schema = options.get("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.match(schema):
        raise StoreUrlError(
            shown, f"schema= has up to 48 of a-z 0-9 _ and begins neither with a digit nor with pg_, got {schema!r}"
        )
    return PostgresAddress(
        shown=shown,
        host=options.get("host") or parts.hostname,
        port=parts.port,
        user=_decoded(parts.username),
        password=_decoded(parts.password),
        database=unquote(parts.path.removeprefix("/")) or None,
        schema=schema,
        tls=tuple(sorted((name, value) for name, value in options.items() if name in _TLS)),
        connect_timeout=_seconds(options.get("connect_timeout"), shown),
        pooled=_pooled(options.get("pooler", "none"), shown),
        commit=_commit(options.get("synchronous_commit"), shown),
        servers=_servers(splits, options.get("host"), shown),
    )


def _named_servers(url: str) -> list[str]:
    """Give the servers before the database's name, if there are several."""
    rest = url.partition("://")[2]
    server = re.match(r"[^/?#]*", rest.rpartition("@")[2])
    return server[0].split(",") if server is not None and "," in server[0] else []


def _servers(splits: Sequence[SplitResult], host: str | None, shown: str) -> tuple[tuple[str, int], ...]:
    """Give hosts and ports of several servers; nothing for one."""
    if host is not None:
        found = [(name, splits[0].port or DEFAULT_PORT) for name in host.split(",")]
    else:
        found = [(one.hostname or "", one.port or DEFAULT_PORT) for one in splits]
    if len(found) == 1:
        return ()
    if not all(name for name, _ in found):
        raise StoreUrlError(shown, "between two commas, before or behind one, the name of a server is missing")
    return tuple(found)


def _split(url: str, shown: str) -> SplitResult:
    """Split a URL; a password with raw special characters would be cut at the wrong place."""
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        scheme = scheme.partition(":")[0]
        raise StoreUrlError(shown, f"two slashes come before the server: {scheme}://user:password@host/database")
    before, at, _ = rest.rpartition("@")
    if "#" in rest or (at and re.search(r"[/?#@]", before)):
        raise StoreUrlError(shown, _ENCODE)
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises when it is no number
    except ValueError as error:
        raise StoreUrlError(shown, f"{_port_trouble(error)}; {_ENCODE}") from None
    if parts.path.count("/") > 1:
        raise StoreUrlError(shown, "after the server comes one name, that of the database")
    return parts


def _port_trouble(error: ValueError) -> str:
    # The text of the error may quote what stands there: it may be half a password.
    return (
        "the server's name in [] is no address" if "IPv6" in str(error) else "what follows the server's ':' is no port"
    )


def _options(parts: SplitResult, shown: str) -> dict[str, str]:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options.keys() - _OPTIONS:
        close = difflib.get_close_matches(name, sorted(_OPTIONS), n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(_OPTIONS))}"
        raise StoreUrlError(shown, f"it has an unknown option {name!r}: {hint}")
    mode = options.get("sslmode", "prefer")
    if mode not in _SSL_MODES:
        raise StoreUrlError(shown, f"sslmode= is one of {', '.join(_SSL_MODES)}, got {mode!r}")
    return options


def _seconds(text: str | None, shown: str) -> float:
    if text is None:
        return CONNECT_TIMEOUT
    if not re.fullmatch(r"\d+(\.\d+)?", text) or not float(text):
        raise StoreUrlError(shown, f"connect_timeout= is a number of seconds above zero, got {text!r}")
    return float(text)


def _pooled(text: str, shown: str) -> bool:
    if text not in {"none", "session", "transaction"}:
        raise StoreUrlError(shown, f"pooler= is none, session or transaction, got {text!r}")
    return text == "transaction"


def _commit(text: str | None, shown: str) -> str | None:
    if text is not None and text not in _COMMITS:
        raise StoreUrlError(shown, f"synchronous_commit= is one of {', '.join(_COMMITS)}, got {text!r}")
    return text


def _decoded(text: str | None) -> str | None:
    return None if text is None else unquote(text)
