"""Keys and Secrets on every store: nothing of them in tables, errors or logs; and what happens without a key."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from tests.keys import FIRST, SECOND, WRONG
from tests.rooms import vault
from tests.rooms.scene import Ear, becomes, ends
from tests.rooms.users import file_of, make_notes, place_of, user_of
from tests.store.postgres import address_of, by_hand, emptied
from watchbill import (
    App,
    DuplicateRun,
    Handle,
    InvalidValueError,
    RunCancelled,
    RunFailed,
    RunHeld,
    SealedError,
    Secret,
    StepFailed,
    attempt,
    continue_as,
    publish,
    receive,
    sleep,
)
from watchbill.store.open import migrate

NEXT = f"{SECOND},{FIRST}"  # after a rotation
WORD = "xyzzy-plugh"  # what must not be found anywhere
SAID = "frobozz"  # in values that are no Secrets, but sealed all the same


@dataclass
class Login:
    user: str
    password: Secret[str]


async def everything_in(url: str) -> bytes:
    """Give all that is stored, as raw bytes."""
    if url.startswith("sqlite"):
        files = [Path(file_of(url) + part) for part in ("", "-wal")]
        return b"".join(file.read_bytes() for file in files if file.exists())
    schema = address_of(url).schema
    tables = await by_hand(url, "SELECT tablename FROM pg_tables WHERE schemaname = $1", schema)
    found = []
    for (table,) in tables:
        for row in await by_hand(url, f'SELECT * FROM watchbill."{table}"'):
            found += [value if isinstance(value, bytes) else str(value).encode() for value in row.values()]
    return b"\n".join(found)


class Shop:
    """A program that does with Secrets whatever programs do."""

    def __init__(self, url: str, keys: str | None) -> None:
        self.app = App(url, keys=keys)
        self.gate = asyncio.Event()

        @self.app.step(retry=1)
        async def log_in(login: Login, place: str) -> Secret[str]:
            attempt().progress(1, note=f"{SAID} {login.password.reveal()}")
            await attempt().checkpoint({"place": place, "login": login})
            if attempt().number == 1:
                raise ValueError(f"{login.password.reveal()} is refused at {place}")
            return Secret(f"token-{login.password.reveal()}")

        @self.app.step(retry=0)
        def spend(token: Secret[str], place: str) -> str:
            raise PermissionError(f"no more of {token.reveal()} at {place}")

        @self.app.workflow
        async def child(token: Secret[str]) -> Secret[str]:
            return Secret(token.reveal() * 2)

        @self.app.workflow
        async def visit(login: Login, place: str) -> dict[str, Any]:
            publish("place", place)
            token, refused = await log_in(login, place), ""
            try:
                await spend(token, place)
            except StepFailed as failed:
                refused = failed.message
            twice = await child(token)
            word = await receive("word", Secret[str])
            await sleep("10ms")
            return {"token": token, "twice": twice, "word": word, "refused": refused, "place": place}

        @self.app.workflow
        async def waits(word: str) -> str:
            return word + await receive("more", str)

        @self.app.step
        async def say(word: str, more: str) -> str:
            return word + more

        @self.app.workflow
        async def gathers(word: str) -> list[str]:
            return [await say(word, await receive("more", str)) for _ in range(3)]

        @self.app.workflow
        async def fails(word: Secret[str]) -> None:
            raise RuntimeError(f"{word.reveal()} is wrong")

        @self.app.workflow
        async def echo(word: str) -> str:
            return word

        self.visit, self.waits, self.gathers, self.fails, self.echo = visit, waits, gathers, fails, echo

    async def start(self, workflow: Any, *args: Any, id: str) -> Handle[Any]:
        return await self.app.start(workflow, *args, id=id)


LOGIN = Login("ann", Secret(WORD))


async def test_a_whole_workflow_with_secrets(url):
    shop = Shop(url, FIRST)
    async with shop.app.rooms():
        handle = await shop.start(shop.visit, LOGIN, SAID, id="v")
        await becomes(handle, lambda status: status.waiting_for and "'word'" in status.waiting_for)
        await handle.send("word", Secret(f"{WORD}!"))
        result = await ends(handle)
        assert result["token"] == f"token-{WORD}"  # an untyped result is plain JSON
        assert result["twice"] == f"token-{WORD}" * 2
        assert result["word"] == f"{WORD}!"
        assert result["refused"] == f"no more of *** at {SAID}"
        assert await handle.published() == {"place": SAID}
        status = await handle.status()
        assert WORD not in repr(status)
        assert f"ValueError: *** is refused at {SAID}" in repr(status)


async def test_nothing_is_found_in_the_store(kept, caplog):
    caplog.set_level(logging.DEBUG)
    shop = Shop(kept, FIRST)
    ear = Ear(shop.app)
    async with shop.app.rooms():
        handle = await shop.start(shop.visit, LOGIN, SAID, id="v")
        await becomes(handle, lambda status: status.waiting_for and "'word'" in status.waiting_for)
        live = await everything_in(kept)
        await handle.send("word", Secret(WORD))
        await ends(handle)
        failed = await shop.start(shop.fails, Secret(WORD), id="f")
        with pytest.raises(RunFailed, match=r"RuntimeError: \*\*\* is wrong") as refused:
            await ends(failed)
        cancelled = await shop.start(shop.waits, SAID, id="c")
        await cancelled.cancel(f"because of {SAID}")
        with pytest.raises(RunCancelled, match=SAID):
            await ends(cancelled)
        large = await shop.start(shop.echo, SAID * 100_000, id="large")
        assert await ends(large) == SAID * 100_000
    await shop.app.close()
    for stored in (live, await everything_in(kept)):
        assert b"visit" in stored  # we look in the right place
        for word in (WORD, SAID, "is refused at", "is wrong", "PermissionError", "Traceback"):
            assert word.encode() not in stored, word
    assert WORD not in str(refused.value) + refused.value.error.traceback
    assert WORD not in caplog.text + repr(ear.events)


async def test_without_keys_it_is_found(kept):
    """The search above would find something."""
    shop = Shop(kept, None)
    async with shop.app.rooms():
        await ends(await shop.start(shop.echo, SAID, id="e"))
    assert SAID.encode() in await everything_in(kept)


async def test_without_keys_a_secret_is_refused_where_it_is_given(url):
    shop = Shop(url, None)
    with pytest.raises(InvalidValueError, match=r"argument 'login' of workflow 'visit' .*\.password it is a Secret"):
        await shop.start(shop.visit, LOGIN, "x", id="v")
    async with shop.app.rooms():
        handle = await shop.start(shop.waits, "x", id="w")
        with pytest.raises(InvalidValueError, match="is a Secret"):
            await handle.send("more", Secret("y"))


async def test_a_secret_is_not_published(url):
    app = App(url, keys=FIRST)

    @app.workflow
    async def tells(word: Secret[str]) -> None:
        publish("word", word)

    async with app.rooms():
        with pytest.raises(RunFailed, match="what is published as 'word' cannot be stored: it is a Secret"):
            await ends(await app.start(tells, Secret(WORD)))


# --- keys come and go


async def test_after_a_rotation_the_same_start_is_the_same_run(kept):
    for keys in (None, FIRST, NEXT, NEXT):
        shop = Shop(kept, keys)
        for n in range(3):
            handle = await shop.start(shop.waits, f"{n}", id=f"w-{n}")
            assert (await handle.status()).id == f"w-{n}"
            with pytest.raises(DuplicateRun, match="with other arguments"):
                await shop.start(shop.waits, "other", id=f"w-{n}")
        # One that is there under each key, and one that is new, all or none.
        new = f"n-{keys and keys[:2]}"
        many = [(shop.waits, ["0"], {"id": "w-0"}), (shop.echo, ["new"], {"id": new})]
        assert [handle.id for handle in await shop.app.start_many(many)] == ["w-0", new]
        with pytest.raises(DuplicateRun):
            await shop.app.start_many([(shop.waits, ["0"], {"id": "w-0"}), (shop.waits, ["x"], {"id": "w-1"})])
        own = await shop.start(shop.waits, "own", id=f"own-{keys and keys[:2]}")
        assert own.id
        await shop.app.close()


@pytest.mark.parametrize("driver", ["sqlite3", "psycopg", "asyncpg"])
async def test_a_start_in_a_users_transaction_is_sealed_and_recognised(request, driver):
    url: str = request.getfixturevalue("file")
    if driver != "sqlite3":
        url = request.getfixturevalue("postgres_url")
        await emptied(url)
    id = f"tx-{driver}"
    plain = Shop(url, None)
    await plain.start(plain.echo, "before", id=f"{id}-plain")
    await plain.app.close()
    for keys in (FIRST, NEXT):
        shop = Shop(url, keys)
        async with user_of(driver, url) as user:
            await shop.app.start(shop.echo, SAID, id=id, tx=user.connection)
            there = await shop.app.start(shop.echo, "before", id=f"{id}-plain", tx=user.connection)
            assert not there.pending
            with pytest.raises(DuplicateRun):
                await shop.app.start(shop.echo, "other", id=id, tx=user.connection)
            if driver != "asyncpg":
                await user.commit()
        await shop.app.close()
    assert SAID.encode() not in await everything_in(url)
    async with (shop := Shop(url, NEXT)).app.rooms():
        assert await ends(shop.app.handle(id)) == SAID
        assert await ends(shop.app.handle(f"{id}-plain")) == "before"


async def test_a_run_goes_on_under_new_keys_from_what_was_written_without_and_under_old_ones(kept):
    for n, keys in enumerate((None, FIRST, NEXT)):
        shop = Shop(kept, keys)
        ear = Ear(shop.app)
        async with shop.app.rooms():
            handle = await shop.start(shop.gathers, "a", id="w")
            await handle.send("more", f"{n}")
            if n < 2:
                await ear.hears("step.completed", "w")
                await becomes(handle, lambda status: status.state == "waiting")
            else:
                assert await ends(handle) == ["a0", "a1", "a2"]
                # The journal is copied as it is, with entries from before there were keys, and under both.
                assert await ends(await handle.fork("say.3")) == ["a0", "a1", "a2"]
                assert await ends(await handle.rewind("say.3")) == ["a0", "a1", "a2"]
                fork = await handle.fork("say.2", word="b")
                await fork.send("more", "3")
                assert await ends(fork) == ["a0", "a1", "b3"]
        await shop.app.close()


async def test_what_a_part_was_given_is_sealed_in_a_copy_too(kept):
    def reads(app: App) -> Any:
        @app.step
        async def say(word: str) -> str:
            return word

        @app.workflow
        async def second(word: Secret[str], by: str) -> list[str]:
            said = await say(await receive("line", str))
            return [word.reveal(), by, said, await receive("line", str)]

        @app.workflow
        async def first(word: Secret[str]) -> list[str]:
            await receive("go")
            return await continue_as(second, word, "ada")

        return first

    app = App(kept, keys=FIRST)
    workflow = reads(app)
    async with app.rooms():
        run = await app.start(workflow, Secret(WORD), id="w")
        for line in (SAID, f"{SAID} again"):
            await run.send("line", line)
        await run.send("go", None)
        assert await ends(run) == [WORD, "ada", SAID, f"{SAID} again"]
    after = App(kept, keys=NEXT)
    reads(after)
    async with after.rooms():
        assert await ends(await after.handle("w").fork("say")) == [WORD, "ada", SAID, f"{SAID} again"]
        assert await ends(await after.handle("w").fork("say", by="bob")) == [WORD, "bob", SAID, f"{SAID} again"]
        stored = await everything_in(kept)
    assert WORD.encode() not in stored
    assert SAID.encode() not in stored


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        (None, "sealed with key 'k1', and there are no keys here"),
        (SECOND, "sealed with key 'k1', which is not among the keys here ('k2')"),
        (WRONG, "sealed with key 'k1', and the key of that id here is another one"),
    ],
)
async def test_without_the_key_runs_are_held_with_the_reason_and_go_on_when_it_is_back(kept, keys, why):
    shop = Shop(kept, FIRST)
    async with shop.app.rooms():
        waiting = await shop.start(shop.waits, "a", id="waiting")
        await becomes(waiting, lambda status: status.state == "waiting")
        done = await shop.start(shop.echo, SAID, id="done")
        await ends(done)
    await shop.start(shop.echo, SAID, id="new")
    await waiting.send("more", "b")
    cancelled = await shop.start(shop.waits, "c", id="cancelled")
    await cancelled.cancel("nobody wants it")
    await shop.app.close()

    other = Shop(kept, keys)
    ear = Ear(other.app)
    async with other.app.rooms():
        await ear.hears("run.held", "new")
        await ear.hears("run.held", "waiting")
        for id in ("new", "waiting"):
            status = await other.app.handle(id).status()
            assert why in (status.held or "")
            assert status.health == "waiting_for_person"
        with pytest.raises(RunHeld, match=r"sealed with key 'k1'"):
            await cast(Any, other.app._hall).result(other.app.handle("waiting"), None, held_too=True)
        with pytest.raises(SealedError, match=r"run 'done' cannot be read: sealed with key 'k1'"):
            await ends(other.app.handle("done"))
        with pytest.raises(RunCancelled, match=r"sealed with key 'k1'"):
            await ends(other.app.handle("cancelled"))
        assert (await other.app.handle("done").status()).state == "completed"
        mine = await other.start(other.echo, "mine", id="mine")
        assert await ends(mine) == "mine"
    assert not ear.of("run.diverged")
    assert len(ear.of("run.held", "waiting")) == 1
    await other.app.close()

    shop = Shop(kept, FIRST if keys != SECOND else f"{FIRST},{SECOND}")
    async with shop.app.rooms():
        assert await ends(shop.app.handle("new")) == SAID
        assert await ends(shop.app.handle("waiting")) == "ab"


async def test_an_attempt_that_cannot_be_opened_is_quarantined_and_says_why(kept):
    def program(keys: str | None) -> tuple[App, Any, Any]:
        app = App(kept, keys=keys)

        @app.step(retry=5)
        async def work(word: str) -> str:
            if attempt().number == 1:
                raise ValueError(word)
            return word

        @app.workflow
        async def works(word: str) -> str:
            return await work(word)

        return app, work, works

    app, _, works = program(FIRST)
    ear = Ear(app)
    async with app.rooms(supervisor=False):
        handle = await app.start(works, SAID, id="w")
        await ear.hears("step.failed", "w")
    await app.close()

    other, _, _ = program(SECOND)
    ear = Ear(other)
    async with other.rooms(scheduler=False):
        await ear.hears("step.quarantined", "w")
        status = await other.handle("w").status()
        assert status.health == "waiting_for_person"
    await other.close()

    app, _, works = program(FIRST)
    async with app.rooms():
        handle = app.handle("w", works)
        await handle.retry()
        assert await ends(handle) == SAID


async def test_what_diverged_is_shown_without_secrets(kept, caplog):
    caplog.set_level(logging.DEBUG)

    def program(other: str) -> tuple[App, Any]:
        app = App(kept, keys=FIRST)

        @app.step
        async def use(word: Secret[str], n: str) -> None: ...

        @app.workflow
        async def uses(word: Secret[str]) -> None:
            await use(Secret(word.reveal() + other), other)
            await receive("more", str)

        return app, uses

    app, uses = program("1")
    async with app.rooms():
        await becomes(await app.start(uses, Secret(WORD), id="u"), lambda status: status.state == "waiting")
    await app.close()
    app, uses = program("2")
    ear = Ear(app)
    async with app.rooms():
        await app.handle("u").send("more", "x")
        await ear.hears("run.diverged", "u")
        reason = (await app.handle("u").status()).held or ""
    assert '["***","2"]' in reason
    assert WORD not in reason + repr(ear.events) + caplog.text


# --- in a process of its own


@pytest.fixture
def with_vault() -> Callable[[App], None]:
    def add(app: App) -> None:
        for step in (vault.unlocks, vault.breaks, vault.unlocks_in_a_transaction):
            app.registry.add_step(step)

    return add


async def test_a_process_of_its_own_needs_no_keys(kept, with_vault):
    app = App(kept, keys=FIRST)
    with_vault(app)

    @app.workflow
    async def opens(word: Secret[str]) -> list[Any]:
        opened = await vault.unlocks(word)
        try:
            await vault.breaks(word)
        except StepFailed as failed:
            return [opened, failed.message]
        return []

    async with app.rooms():
        assert await ends(await app.start(opens, Secret(WORD))) == [WORD.upper(), "*** does not fit"]
    await app.close()
    stored = await everything_in(kept)
    for word in (WORD, WORD.upper(), "does not fit", "trying"):
        assert word.encode() not in stored


async def test_it_finishes_sealed_in_its_own_transaction(kept, with_vault):
    await asyncio.to_thread(migrate, kept)
    await make_notes(kept)
    app = App(kept, keys=FIRST)
    with_vault(app)
    place = {"file": file_of(kept)} if kept.startswith("sqlite") else place_of(kept)

    @app.workflow
    async def opens(word: Secret[str]) -> Secret[str]:
        return await vault.unlocks_in_a_transaction(place, word)

    async with app.rooms():
        assert await ends(await app.start(opens, Secret(WORD))) == Secret(WORD.upper())
    await app.close()
    async with user_of("sqlite3" if "file" in place else "psycopg", kept) as user:
        assert await user.notes() == ["unlocked"]
    assert WORD.upper().encode() not in await everything_in(kept)


async def test_a_step_finishes_sealed_in_its_users_transaction(kept):
    await asyncio.to_thread(migrate, kept)
    await make_notes(kept)
    app = App(kept, keys=FIRST)
    driver = "sqlite3" if kept.startswith("sqlite") else "psycopg"

    @app.step
    async def pays(word: Secret[str]) -> str:
        async with user_of(driver, kept) as user:
            await user.note("paid")
            await attempt().finish(word.reveal().upper(), tx=user.connection)
            await user.commit()
        return "not this"

    @app.workflow
    async def buys(word: Secret[str]) -> str:
        return await pays(word)

    async with app.rooms():
        assert await ends(await app.start(buys, Secret(WORD))) == WORD.upper()
    await app.close()
    assert WORD.upper().encode() not in await everything_in(kept)


# --- beside the owner of a file


async def test_a_guest_seals_before_the_wire_and_an_owner_without_keys_holds_what_it_cannot_read(file):
    owner, guest, stranger = Shop(file, FIRST), Shop(file, FIRST), Shop(file, None)
    async with owner.app.rooms():
        handle = await guest.start(guest.waits, SAID, id="w")
        await guest.app.handle("w").send("more", "!")
        assert await ends(handle) == f"{SAID}!"
        await stranger.start(stranger.echo, "plain", id="plain")  # a guest without keys writes as it always did
        assert await ends(owner.app.handle("plain")) == "plain"
    await guest.app.close()
    await stranger.app.close()
    ear = Ear(stranger.app)
    guest = Shop(file, FIRST)
    async with stranger.app.rooms():
        await guest.start(guest.echo, SAID, id="e")
        [held] = await ear.hears("run.held", "e")
        assert "sealed with key 'k1', and there are no keys here" in held.note
    await guest.app.close()
    assert SAID.encode() not in await everything_in(file)
