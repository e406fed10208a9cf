"""Webhooks: their addresses stay secret, and their signatures cover the id, the time and the body."""

import base64
import hashlib
import hmac
import json
import logging
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.forked import watchbill
from tests.rooms.listener import Listener
from tests.rooms.scene import Ear, ends
from tests.rooms.test_alerts import until
from tests.store.postgres import address_of, by_hand
from watchbill import App, Handle, RunFailed
from watchbill.env import SystemEnv
from watchbill.errors import Permanent
from watchbill.model.alert import AlertText, read_routes
from watchbill.posting import NotDeliveredError, message_id, post, read_secrets
from watchbill.public_url import public_part
from watchbill.supervisor.sending import AlertNotSentError, send

TEXT = AlertText("1f", "opened", "default", "c", "", 1, "it died", "decide", (), 1, None)

# --- addresses


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://hooks.example.com/services/T0/B0/xyz?token=abc#part", "https://hooks.example.com/..."),
        ("https://user:word@Hooks.example.com:8443/x", "https://hooks.example.com/..."),
        ("https://hooks.example.com", "https://hooks.example.com"),
        ("http://[::1]:8000/x", "http://[::1]/..."),
        ("http://[::1/x", "http://..."),
        ("slack://token/other", "slack://..."),
        ("mailto://user:word@example.com", "mailto://..."),
        ("no address at all", "..."),
    ],
)
def test_public_part_shows_scheme_and_host_alone(address: str, shown: str) -> None:
    assert public_part(address) == shown


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1/hidden-path?token=hidden",
        "http://user:hidden@127.0.0.1:1/",
        "http://127.0.0.1:1/hidden path",
        "http://127.0.0.1:1/hidden\npath",
        "http://127.0.0.1:hidden/",
    ],
)
def test_error_of_a_failed_post_quotes_neither_path_nor_user_info(address: str) -> None:
    with pytest.raises(NotDeliveredError) as failed:
        post(address, "run_1", "{}")
    assert "hidden" not in str(failed.value)
    assert failed.value.__suppress_context__
    assert failed.value.__cause__ is None


async def everything_stored(url: str) -> str:
    """Give all rows of a store as text; bytes as hexadecimal digits."""
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        files = [path, path.with_name(f"{path.name}-wal")]
        raw = b"".join([file.read_bytes() for file in files if file.exists()])
        return raw.decode("latin-1") + raw.hex()
    names = await by_hand(url, "SELECT tablename FROM pg_tables WHERE schemaname = $1", address_of(url).schema)
    assert names
    rows = [await by_hand(url, f"SELECT t::text FROM watchbill.{name} AS t") for (name,) in names]
    return "\n".join([text for table in rows for (text,) in table])


async def test_address_of_notify_is_shown_and_stored_nowhere(
    url: str, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    alerts = Listener()
    app = App(url, alerts=f"{alerts.url}?also=hushhush")
    ear = Ear(app)
    listener.answers = [404]
    address = f"{listener.url}/hushhush?token=hushhush"

    @app.workflow(notify=address)
    async def order() -> int:
        return 1

    async with app.rooms():
        await ends(await app.start(order, id="r"))
        told: Handle[int] = app.handle("r@notify")
        with pytest.raises(RunFailed, match=r"http://127\.0\.0\.1/\.\.\. answered 404") as failed:
            await ends(told)
        await until(lambda: alerts.heard)
        seen: list[object] = [
            failed.value, failed.value.error, await told.explain(), await told.timeline(), await told.status(),
            await told.graph(), await told.logs(), await app.incidents(), await app.inbox(), await app.metrics(),
            ear.events, [body for _, body in alerts.heard], caplog.text,
        ]  # fmt: skip
    ear.close()
    await app.close()
    commands = (("run", "show", "r@notify"), ("run", "explain", "r@notify"), ("incidents", "list"), ("doctor",))
    seen += [watchbill(*words, "-o", "json", WATCHBILL_STORE=url) for words in commands]
    for one in seen:
        assert "hushhush" not in repr(one)
    listed = [
        [run["id"] for run in watchbill("run", "list", *words, "-o", "json", WATCHBILL_STORE=url).json]
        for words in ((), ("--all",), ("--workflow", "watchbill:notify"))
    ]
    assert listed == [["r"], ["r@notify", "r"], ["r@notify"]]
    stored = await everything_stored(url)
    assert "hushhush" not in stored
    assert b"hushhush".hex() not in stored
    assert "order@1" in stored or b"order@1".hex() in stored, "the search finds what is stored"


async def test_news_of_a_run_goes_to_the_address_that_the_program_has_now(kept: str, listener: Listener) -> None:
    def program(address: str) -> tuple[App, Any]:
        app = App(kept)

        @app.workflow(notify=address)
        async def order() -> int:
            return 1

        return app, order

    first, order = program("http://127.0.0.1:1/old")
    async with first.rooms():
        ear = Ear(first)
        await ends(await first.start(order, id="r"))
        await ear.hears("step.failed", "r@notify")
        ear.close()
    await first.close()
    second, _ = program(listener.url)
    async with second.rooms():
        assert await ends(second.handle("r@notify")) == 200
    [(_, body)] = listener.heard
    assert json.loads(body)["id"] == "r"


def test_apprise_does_not_log_an_address_that_it_cannot_use(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("apprise")
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "apprise")
    for address in ("odd://hushhush/x", "slack://hushhush/hushhush", "json://u:hushhush@127.0.0.1:1/hushhush"):
        [route] = read_routes(address)
        with pytest.raises(AlertNotSentError) as failed:
            send(SystemEnv(), route, TEXT)
        assert "hushhush" not in str(failed.value)
    assert [record for record in caplog.records if record.name == "apprise"]
    assert "hushhush" not in caplog.text


# --- signatures


def verified(headers: dict[str, str], body: bytes, secret: str, now: float | None = None) -> bool:
    """Verify a webhook as the Standard Webhooks specification says; written for this test alone."""
    headers = {name.lower(): value for name, value in headers.items()}
    if abs((time.time() if now is None else now) - int(headers["webhook-timestamp"])) > 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode()
    content = b".".join([headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body])
    expected = hmac.new(key, content, hashlib.sha256).digest()
    found = [one.split(",", 1) for one in headers["webhook-signature"].split(" ")]
    return any(v == "v1" and hmac.compare_digest(base64.b64decode(value), expected) for v, value in found)


NEW = "whsec_" + base64.b64encode(b"n" * 32).decode()
OLD = "whsec_" + base64.b64encode(b"o" * 24).decode()


@pytest.mark.parametrize("secret", [NEW, "a text of any kind"])
def test_signature_covers_id_time_and_body(listener: Listener, monkeypatch: Any, secret: str) -> None:
    monkeypatch.setenv("WATCHBILL_SECRET", secret)
    assert post(listener.url, "run_1f", '{"n": 1}') == 200
    [(headers, body)] = listener.heard
    assert verified(headers, body, secret)
    assert not verified(headers, body + b" ", secret)
    assert not verified(headers, body, OLD)
    later = time.time() + 3_600
    assert not verified(headers, body, secret, later), "too old"
    lower = {name.lower(): value for name, value in headers.items()}
    assert lower["webhook-id"] == "run_1f"
    assert not verified({**lower, "webhook-id": "run_2"}, body, secret)
    assert not verified({**lower, "webhook-timestamp": str(int(later))}, body, secret, later)


def test_rotated_secret_signs_beside_the_new_one(listener: Listener, monkeypatch: Any) -> None:
    monkeypatch.setenv("WATCHBILL_SECRET", f"{NEW}, {OLD}")
    post(listener.url, "run_1", "{}")
    [(headers, body)] = listener.heard
    assert verified(headers, body, NEW)
    assert verified(headers, body, OLD)


def test_known_signature_is_reproduced() -> None:
    """The example of the specification's reference implementations."""
    from watchbill.posting import signatures

    [key] = read_secrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = signatures([key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_without_a_secret_nothing_is_signed(listener: Listener, monkeypatch: Any) -> None:
    monkeypatch.delenv("WATCHBILL_SECRET", raising=False)
    post(listener.url, "run_1", "{}")
    [(headers, _)] = listener.heard
    assert "webhook-signature" not in {name.lower() for name in headers}


def test_secret_that_is_not_base64_is_refused_and_not_quoted(listener: Listener, monkeypatch: Any) -> None:
    monkeypatch.setenv("WATCHBILL_SECRET", "whsec_hush!hush")
    with pytest.raises(NotDeliveredError, match="WATCHBILL_SECRET has a secret") as failed:
        post(listener.url, "run_1", "{}")
    assert "hush" not in str(failed.value)
    assert listener.heard == []


def test_message_id_has_no_dot_and_fits_into_a_header() -> None:
    assert message_id("1f-opened") == "1f-opened"
    for odd in ("a.b", "good@notify", "line\nbreak", "ü", "x" * 300):
        assert re.fullmatch(r"msg_[0-9a-f]{32}", message_id(odd))
    assert message_id("a.b") == message_id("a.b") != message_id("a.c")


async def test_repeated_delivery_keeps_its_id(app: App, listener: Listener, monkeypatch: Any) -> None:
    monkeypatch.setenv("WATCHBILL_SECRET", NEW)
    ids: list[str] = []
    listener.answers = [503]
    listener.saw = lambda headers: ids.append(headers["webhook-id"])

    @app.workflow(notify=listener.url)
    async def order() -> int:
        return 1

    async with app.rooms():
        await ends(await app.start(order, id="r"))
        assert await ends(app.handle("r@notify")) == 200
    assert len(ids) == 2
    assert len(set(ids)) == 1
    [(headers, body)] = listener.heard
    assert verified(headers, body, NEW)


def test_refused_post_is_permanent(listener: Listener) -> None:
    listener.answers = [410, 429]
    with pytest.raises(Permanent, match=r"^http://127\.0\.0\.1/\.\.\. answered 410$"):
        post(listener.url, "run_1", "{}")
    with pytest.raises(NotDeliveredError, match="answered 429"):
        post(listener.url, "run_1", "{}")
