"""Addresses of PostgreSQL: what they say, how a wrong one is put right, and that no password is ever shown."""

import pytest

from watchbill.errors import StoreUrlError
from watchbill.store.address import PostgresAddress, is_memory, parse_url, redacted

SECRET = "s3cr3t"


def parsed(url: str) -> PostgresAddress:
    address = parse_url(url).postgres
    assert address is not None
    return address


def test_all_parts():
    address = parsed("postgresql://ada:pw@db.example:6432/shop?schema=flows&sslmode=require&connect_timeout=3")
    assert (address.host, address.port, address.user, address.password, address.database) == (
        "db.example", 6432, "ada", "pw", "shop",
    )  # fmt: skip
    assert (address.schema, address.tls, address.connect_timeout) == ("flows", (("sslmode", "require"),), 3.0)
    assert not address.pooled


def test_what_is_not_said_is_left_to_the_driver():
    address = parsed("postgres://")
    assert (address.host, address.port, address.user, address.password, address.database) == (None,) * 5
    assert address.schema == "watchbill"


def test_a_socket_is_a_host():
    assert parsed("postgresql://ada@/shop?host=/run/postgresql").host == "/run/postgresql"
    assert parsed("postgresql://ada@/shop?host=%2Frun%2Fpostgresql").host == "/run/postgresql"
    assert parsed("postgresql://ada@[::1]:5433/shop").host == "::1"


def test_odd_characters_are_percent_encoded():
    address = parsed("postgresql://ad%40a:p%40s%2Fs%23w%3Fo%3Ar%25d@host/sh%20op")
    assert (address.user, address.password, address.database) == ("ad@a", "p@s/s#w?o:r%d", "sh op")


@pytest.mark.parametrize(
    "password", ["s3@cr3t", "s3/cr3t", "s3#cr3t", "s3?cr3t", "s3/cr@3t", "@s3cr3t", "s3cr3t#", "12/s3cr3t"]
)
def test_raw_odd_characters_are_refused_with_the_remedy(password):
    with pytest.raises(StoreUrlError, match="percent-encode") as refused:
        parse_url(f"postgresql://ada:{password}@host/shop")
    assert "cr3t" not in str(refused.value)
    assert "cr3t" not in refused.value.url


def test_a_database_in_postgresql_is_not_in_memory():
    assert not is_memory("postgresql://localhost/x")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql:shop", "two slashes"),
        ("postgresql://host/shop?shema=x", "did you mean 'schema'?"),
        ("postgresql://host/shop?sslmod=require", "did you mean 'sslmode'?"),
        ("postgresql://host/shop?x=1", "there are connect_timeout, host"),
        ("postgresql://host/shop?sslmode=yes", "sslmode= is one of"),
        ("postgresql://host/shop?schema=My-Schema", "schema= has up to 48"),
        ("postgresql://host/shop?schema=pg_x", "schema= has up to 48"),
        ("postgresql://host/shop?connect_timeout=soon", "number of seconds"),
        ("postgresql://host/shop?connect_timeout=0", "number of seconds"),
        ("postgresql://host/shop?pooler=statement", "pooler= is none, session or transaction"),
        ("postgresql://host:port/shop", "is no port"),
        ("postgresql://host:99999/shop", "is no port"),
        ("postgresql://[::1/shop", "is no address"),
        ("postgresql://one,,two/shop", "the name of a server is missing"),
        ("postgresql://one:1,two:x/shop", "is no port"),
        ("postgresql:///shop?synchronous_commit=maybe", "synchronous_commit= is one of on, off, local"),
        ("postgresql://host/shop/flows", "one name, that of the database"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(url, says):
    with pytest.raises(StoreUrlError) as refused:
        parse_url(url)
    assert says in str(refused.value)
    assert "postgresql://user:password@host/database" in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ada:{SECRET}@host/shop",
        f"postgresql://ada:{SECRET}@host/shop?shema=x",
        f"postgresql://ada:{SECRET}",
        f"postgresql://ada:{SECRET}#@host",
        f"postgresql://host/shop?password={SECRET}",
        f"postgresql://ada@host/shop?password={SECRET}",
        f"postgresql://:{SECRET}@host/shop",
        f"mysql://ada:{SECRET}@host/shop",
        f"postgresql://ada:{SECRET}@host:x/shop",
        f"postgresql://ada:{SECRET}@[::1/shop",
        f"postgresql://ada:{SECRET}\0@host/shop",
    ],
)
def test_no_password_is_ever_shown(url):
    assert SECRET not in redacted(url)
    shown: list[object] = []
    try:
        shown += [parse_url(url), parse_url(url).url]
    except StoreUrlError as error:
        refused = error
        shown += [
            refused,
            refused.url,
            refused.__cause__,
            None if refused.__suppress_context__ else refused.__context__,
        ]
    assert SECRET not in f"{shown!r}{[str(part) for part in shown]}"


def test_addresses_without_a_password_are_shown_whole():
    for url in (
        "postgresql://ada@host/shop",
        "postgresql:///shop?host=/tmp/x",
        "postgres://host:5432/x",
        "sqlite:///a:b@c.db",
    ):
        assert redacted(url) == url
    assert redacted("postgresql://ada:pw@host/shop?schema=x") == "postgresql://ada:***@host/shop?schema=x"


@pytest.mark.parametrize(
    ("url", "servers"),
    [
        ("postgresql://one,two:6000/shop", (("one", 5432), ("two", 6000))),
        ("postgresql://me:secret@one:1,[::1]:2/shop", (("one", 1), ("::1", 2))),
        ("postgresql://me@/shop?host=/run/one,/run/two", (("/run/one", 5432), ("/run/two", 5432))),
        ("postgresql://one/shop", ()),
    ],
)
def test_an_address_names_several_servers(url: str, servers: tuple[tuple[str, int], ...]) -> None:
    address = parse_url(url).postgres
    assert address is not None
    assert (address.servers, address.database) == (servers, "shop")
    assert "secret" not in address.shown


def test_synchronous_commit_is_what_the_address_names() -> None:
    named = parse_url("postgresql:///shop?synchronous_commit=off").postgres
    plain = parse_url("postgresql:///shop").postgres
    assert named is not None
    assert plain is not None
    assert (named.commit, named.forgetful, plain.commit, plain.forgetful) == ("off", True, None, False)
