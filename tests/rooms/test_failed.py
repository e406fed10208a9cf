"""Runs that end because a step failed for good: one incident for one cause, told once, over when all are seen to."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from tests.keys import FIRST
from tests.rooms.listener import Listener
from tests.rooms.scene import LONG, LOOK_EVERY, Ear, ends
from tests.rooms.test_wardroom import Post
from watchbill import App, InvalidOptionError, Permanent, RunFailed, Secret, sleep
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.events import INCIDENT_OPENED, INCIDENT_RESOLVED, RUN_CANCELLED, RUN_COMPLETED, RUN_FAILED
from watchbill.model.alert import read_routes
from watchbill.model.failed import NOT_SEEN_FOR
from watchbill.model.incident import Incident
from watchbill.model.resolution import Action, Resolution
from watchbill.store.open import open_store
from watchbill.supervisor.second_chance import RETRIED_AT_ONCE
from watchbill.supervisor.wardroom import LIMIT
from watchbill.testing.conformance.failed import failed

EVERY = 100_000
MANY = 4_000
RETRY = msgspec.json.encode(Resolution(Action.RETRY, "the bank is back"))


class Bank:
    """A program whose step fails until it is mended."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.ear = Ear(app)
        self.mended = False
        self.refunds = False

        @app.step(retry=0)
        async def reserve(item: str) -> str:
            return f"{item} reserved"

        @reserve.undo
        async def release(result: str | None, item: str) -> None:
            if not self.refunds:
                raise Permanent(f"no line to the store for {item}")

        @app.step(retry=0)
        async def charge(item: str) -> str:
            if not self.mended:
                raise ConnectionError(f"no line to the bank for {item!r}")
            return f"{item} paid"

        @app.step(retry=0)
        async def whisper(word: Secret[str]) -> None:
            raise ValueError(f"{word.reveal()} is no word")

        @app.workflow
        async def pay(item: str) -> str:
            return await charge(item)

        @app.workflow
        async def order(item: str) -> str:
            await reserve(item)
            return await charge(item)

        @app.workflow
        async def family(item: str) -> str:
            return await pay(item)

        @app.workflow
        async def at_once(item: str) -> str:
            async with asyncio.TaskGroup() as group:
                paid = group.create_task(charge(item))
            return paid.result()

        @app.workflow
        async def careful(item: str) -> str:
            with contextlib.suppress(RunFailed):
                await order(item)
            return "never mind"

        @app.workflow
        async def clumsy(item: str) -> str:
            raise KeyError(item)

        @app.workflow
        async def slow(item: str) -> None:
            await sleep("1h")

        @app.workflow(deadline="50ms")
        async def late(item: str) -> None:
            await sleep("1h")

        @app.workflow
        async def secret(word: Secret[str]) -> None:
            await whisper(word)

        self.pay, self.order, self.family, self.careful, self.clumsy = pay, order, family, careful, clumsy
        self.at_once, self.slow, self.late, self.secret = at_once, slow, late, secret

    async def runs(self, workflow: Any, *ids: str) -> None:
        """Start runs, and wait for their ends, whatever these are."""
        handles = [await self.app.start(workflow, id, id=id) for id in ids]
        await asyncio.gather(*(ends(handle) for handle in handles), return_exceptions=True)

    async def incident(self, members: int = 1) -> Incident:
        async with asyncio.timeout(LONG):
            while True:
                for incident in await self.app.incidents():
                    if incident.members == members:
                        return incident
                await asyncio.sleep(LOOK_EVERY)


@pytest.fixture
async def bank(app: App) -> AsyncIterator[Bank]:
    bank = Bank(app)
    yield bank
    bank.ear.close()


# --- what is an incident


async def test_runs_that_fail_alike_are_one_incident_that_says_what_failed_and_what_can_be_done(bank: Bank) -> None:
    async with bank.app.rooms():
        await bank.runs(bank.pay, "o-1", "o-2", "o-3")
        incident = await bank.incident(3)
        assert incident.cause.startswith("failure of charge ")
        assert incident.said.startswith(
            "step 'charge' failed for good after 1 attempt (raised), and its runs with it:"
            " ConnectionError: no line to the bank for 'o-"
        )
        assert set(incident.examples) == {"o-1", "o-2", "o-3"}
        assert (incident.actions, incident.member) == (("retry", "skip"), "run")
        assert f"watchbill incidents retry {incident.id} --reason WHY" in incident.remedy
        [explained] = [said for said in (await bank.app.handle("o-1").explain()).sentences if "incident" in said]
        assert f"`watchbill incidents retry {incident.id} --reason ...`" in explained
        assert len(await bank.ear.hears(INCIDENT_OPENED)) == 1


async def test_what_could_not_be_undone_is_an_incident_of_its_own_and_what_was_undone_one_like_the_others(
    bank: Bank,
) -> None:
    async with bank.app.rooms():
        await bank.runs(bank.order, "o-1", "o-2")
        incident = await bank.incident(2)
        assert incident.cause.startswith("failed undo of release ")
        assert "no line to the store for o-" in incident.said
        assert "undo by hand" in incident.remedy
        assert [one.id for one in await bank.app.incidents()] == [incident.id]
        bank.refunds = True
        await bank.runs(bank.order, "o-3")
        await bank.runs(bank.pay, "o-4")  # it had done nothing
        assert (await bank.incident(2)).id
        await bank.ear.hears(INCIDENT_OPENED, times=2)
        causes: dict[str, int] = {}
        async with asyncio.timeout(LONG):
            while causes != {"failed undo of release": 2, "failure of charge": 2}:
                await asyncio.sleep(LOOK_EVERY)
                causes = {one.cause.rpartition(" ")[0]: one.members for one in await bank.app.incidents()}


async def test_what_fails_in_a_run_below_is_told_of_the_one_on_top_and_what_is_not_undone_of_itself(bank: Bank) -> None:
    async with bank.app.rooms():
        await bank.runs(bank.family, "o-1")
        incident = await bank.incident()
        assert (incident.examples, incident.cause.rpartition(" ")[0]) == (("o-1",), "failure of charge")
        await bank.runs(bank.pay, "o-2")
        assert (await bank.incident(2)).id == incident.id  # the same cause
        await bank.runs(bank.careful, "o-3")  # it goes on without; but what is left of it is nobody's to see
        await bank.ear.hears(INCIDENT_OPENED, times=2)
        [undo] = [one for one in await bank.app.incidents() if one.id != incident.id]
        assert (undo.examples, undo.cause.rpartition(" ")[0]) == (("o-3/order",), "failed undo of release")


async def test_a_step_that_fails_in_a_group_of_tasks_is_a_steps_failure(bank: Bank) -> None:
    async with bank.app.rooms():
        await bank.runs(bank.at_once, "o-1")
        assert (await bank.incident()).cause.startswith("failure of charge ")


async def test_what_the_workflow_raises_itself_is_its_authors_business_and_who_cancels_knows_of_it(bank: Bank) -> None:
    async with bank.app.rooms():
        slow = await bank.app.start(bank.slow, "s-1", id="s-1")
        await slow.cancel("not today")
        await bank.runs(bank.clumsy, "c-1")
        await bank.runs(bank.late, "l-1")
        await bank.ear.hears(RUN_CANCELLED, "s-1")
        await bank.runs(bank.pay, "o-1")  # what came before has been looked at then
        await bank.incident()
        [incident] = await bank.app.incidents()
        assert (incident.members, incident.examples) == (1, ("o-1",))
        assert {event.run for event in bank.ear.of(RUN_FAILED)} == {"c-1", "l-1", "o-1"}


async def test_what_is_a_secret_is_told_nowhere(url: str) -> None:
    bank = Bank(App(url, keys=FIRST))
    async with bank.app.rooms():
        with pytest.raises(RunFailed):
            await ends(await bank.app.start(bank.secret, Secret("hunter22"), id="w-1"))
        incident = await bank.incident()
        assert "ValueError" in incident.said
        assert "hunter22" not in str(incident)
    bank.ear.close()


# --- what people do about it


async def test_all_go_on_as_new_runs_and_it_is_resolved_once_when_all_do(url: str, listener: Listener) -> None:
    app = App(url, alerts=listener.url)
    bank = Bank(app)
    async with app.rooms():
        await bank.runs(bank.pay, "o-1", "o-2", "o-3")
        incident = await bank.incident(3)
        bank.mended = True
        await app.resolve(incident.id, "retry", by="ada", reason="the bank is back")
        for id in ("o-1", "o-2", "o-3"):
            await bank.ear.hears(RUN_COMPLETED, f"{id}~2")
        assert await ends(app.handle("o-1~2", bank.pay)) == "o-1 paid"
        assert [event.kind for event in await app.handle("o-1").timeline() if event.kind == "retry"] == []
        [asked] = [event for event in await app.handle("o-1~2").timeline() if event.kind == "retry"]
        assert (asked.actor, asked.note) == ("ada", "by ada: the bank is back")
        await bank.ear.hears(INCIDENT_RESOLVED)
        async with asyncio.timeout(LONG):
            while len(listener.heard) < 2:
                await asyncio.sleep(LOOK_EVERY)
        told = [(json.loads(body)["incident"], json.loads(body)["event"]) for _, body in listener.heard]
        assert told == [(incident.id, "opened"), (incident.id, "resolved")]
        assert await app.incidents() == []
        assert (len(bank.ear.of(INCIDENT_OPENED)), len(bank.ear.of(INCIDENT_RESOLVED))) == (1, 1)
        assert not [said for said in (await app.handle("o-1").explain()).sentences if "incident" in said]
    bank.ear.close()


async def test_one_that_failed_below_goes_on_with_a_new_run_below(bank: Bank) -> None:
    async with bank.app.rooms():
        await bank.runs(bank.family, "o-1")
        incident = await bank.incident()
        bank.mended = True
        await bank.app.resolve(incident.id, "resume", by="ada", reason="the bank is back")
        await bank.ear.hears(RUN_COMPLETED, "o-1~2")
        assert await ends(bank.app.handle("o-1~2", bank.family)) == "o-1 paid"


async def test_run_whose_id_is_too_long_for_a_copy_stays_with_its_incident(bank: Bank) -> None:
    long = "x" * 200
    async with bank.app.rooms():
        await bank.runs(bank.pay, "o-1", long)
        incident = await bank.incident(2)
        bank.mended = True
        await bank.app.resolve(incident.id, "retry", by="ada", reason="the bank is back")
        await bank.ear.hears(RUN_COMPLETED, "o-1~2")
        assert (await bank.incident(1)).id == incident.id
        assert (await bank.app.handle(long).status()).state == "failed"


async def test_those_that_are_left_as_they_are_are_left_and_it_is_written_down_why(bank: Bank) -> None:
    async with bank.app.rooms():
        await bank.runs(bank.pay, "o-1", "o-2")
        incident = await bank.incident(2)
        await bank.app.resolve(incident.id, "skip", by="ada", reason="paid in cash")
        await bank.ear.hears(INCIDENT_RESOLVED)
        for id in ("o-1", "o-2"):
            [said] = [event for event in await bank.app.handle(id).timeline() if event.kind == "skip"]
            assert (said.actor, said.note) == ("ada", "by ada: paid in cash")
            assert (await bank.app.handle(id).status()).state == "failed"
        assert len([handle async for handle in bank.app.runs()]) == 2


async def test_what_makes_no_sense_for_runs_that_have_ended_is_refused_with_what_does(bank: Bank) -> None:
    async with bank.app.rooms():
        await bank.runs(bank.pay, "o-1")
        incident = await bank.incident()
        for action, value in (("provide", "paid"), ("undo", None), ("abort", None)):
            with pytest.raises(InvalidOptionError, match="retry goes on with them as new runs, skip leaves them"):
                await bank.app.resolve(incident.id, action, value, by="ada", reason="why not")
        with pytest.raises(InvalidOptionError, match="`fork` makes a new run with other ones"):
            await bank.app.resolve(incident.id, "retry", by="ada", reason="why not", args={"item": "x"})
        assert (await bank.app.incidents())[0].ordered_by is None


async def test_it_is_resolved_when_the_last_one_was_retried_forked_or_deleted_by_hand(bank: Bank) -> None:
    async with bank.app.rooms():
        await bank.runs(bank.pay, "o-1", "o-2")
        await bank.incident(2)
        bank.mended = True
        assert await ends(await bank.app.handle("o-1", bank.pay).retry()) == "o-1 paid"
        await bank.incident(1)
        await bank.app._hall.delete("o-2")  # type: ignore[attr-defined]
        await bank.ear.hears(INCIDENT_RESOLVED)


async def test_with_keys_nothing_of_it_stands_in_the_open_and_all_of_it_works(url: str, listener: Listener) -> None:
    app = App(url, alerts=listener.url, keys=FIRST)
    bank = Bank(app)
    async with app.rooms():
        await bank.runs(bank.pay, "hunter22")
        incident = await bank.incident()
        assert "no line to the bank for 'hunter22'" in incident.said
        store = app._hall._store.behind  # type: ignore[attr-defined]
        [row] = await store.client.incidents("default", EVERY)
        assert b"line to the bank" not in row.body
        bank.mended = True
        await bank.app.resolve(incident.id, "retry", by="ada", reason="the line is back")
        await bank.ear.hears(RUN_COMPLETED, "hunter22~2")
        await bank.ear.hears(INCIDENT_RESOLVED)
        async with asyncio.timeout(LONG):
            while not listener.heard:
                await asyncio.sleep(LOOK_EVERY)
        assert all(b"line" not in body for _, body in listener.heard)
    bank.ear.close()


# --- many, and whoever dies


@pytest.fixture
async def post(url: str) -> AsyncIterator[Post]:
    from watchbill.testing.conformance.scene import HandClock

    clock = HandClock()
    store = await open_store(url, SystemEnv(), clock=clock)
    post = Post(store, clock)
    await post.scene.open()
    yield post
    await store.close()


async def many_failed(post: Post, count: int = MANY) -> None:
    for first in range(1, count + 1, 1_000):
        await failed(post.scene, *range(first, min(first + 1_000, count + 1)), read=False)


def copies(ids: list[str]) -> list[str]:
    return [id for id in ids if "~" in id]


async def ids(post: Post) -> list[str]:
    return [run.id for run in await post.scene.store.client.runs("default", limit=EVERY)]


async def test_four_thousand_that_fail_alike_are_one_incident_with_one_alert(post: Post) -> None:
    routes = read_routes("https://team.example")
    post.rooms = [post.another(routes=routes), post.another(routes=routes, polls=True)]
    await many_failed(post)
    doors = post.scene.store.supervisor
    assert len((await doors.muster(LIMIT)).failed) == LIMIT  # so many in one look, and no more
    await post.passes(4 * SECOND)
    [incident] = await post.scene.store.client.incidents("default", EVERY)
    assert (incident.members, incident.waiting) == (MANY, MANY)
    assert len(post.heard(INCIDENT_OPENED)) == 1
    due = await doors.take_alerts([route.mark for route in routes], EVERY, SECOND)
    assert [alert.incident.id for alert in due.alerts] == [incident.id]
    seen = await doors.muster(LIMIT)
    assert (seen.failed, seen.waiting, seen.healed, seen.orders) == ((), (), (), ())


async def test_four_thousand_are_left_as_they_are_in_a_few_looks(post: Post) -> None:
    await many_failed(post)
    await post.passes(2 * SECOND)
    [incident] = await post.scene.store.client.incidents("default", EVERY)
    skip = msgspec.json.encode(Resolution(Action.SKIP, "nobody wants them"))
    await post.scene.store.client.order_incident("default", incident.id, "ada", skip, 1, failed=True)
    await post.passes(10 * SECOND)
    assert len(post.heard(INCIDENT_RESOLVED)) == 1
    assert await post.scene.store.client.incidents("default", EVERY, resolved=False) == []
    assert copies(await ids(post)) == []


async def test_they_go_on_a_few_in_each_second_and_once_whoever_dies_meanwhile(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    await many_failed(post, 12)
    await post.passes(SECOND)
    [incident] = await post.scene.store.client.incidents("default", EVERY)
    await post.scene.store.client.order_incident("default", incident.id, "ada", RETRY, 5, failed=True)
    doors = type(post.scene.store.supervisor)
    retry, deaths = doors.retry_failed, [3, 8]  # after so many it dies, before it can say how far it has come

    async def dying(*args: Any, **kwargs: Any) -> Any:
        became = await retry(*args, **kwargs)
        made = len(copies(await ids(post)))
        if deaths and made >= deaths[0]:
            del deaths[0]
            raise ConnectionAbortedError("dead")
        return became

    monkeypatch.setattr(doors, "retry_failed", dying)
    seen = []
    for _ in range(8):
        try:
            await post.passes(SECOND)
        except ConnectionAbortedError:
            post.rooms = [post.another()]
        seen.append(len(copies(await ids(post))))
        post.clock.pass_by(SECOND // 10)
    assert not deaths
    assert seen[0] == 3
    assert all(later - earlier <= 5 for earlier, later in pairwise(seen))
    assert sorted(copies(await ids(post))) == sorted(f"o-{num}~2" for num in range(1, 13))
    assert len(post.heard(INCIDENT_RESOLVED)) == 1
    assert (await post.scene.store.supervisor.muster(LIMIT)).orders == ()


async def test_several_who_look_let_each_go_on_once_and_at_one_pace(post: Post) -> None:
    post.rooms += [post.another(), post.another(polls=True)]
    await many_failed(post, 7)
    await post.passes(SECOND)
    [incident] = await post.scene.store.client.incidents("default", EVERY)
    await post.scene.store.client.order_incident("default", incident.id, "ada", RETRY, 2, failed=True)
    await post.passes(SECOND // 2)
    assert len(copies(await ids(post))) == 2
    await post.passes(SECOND)
    assert len(copies(await ids(post))) == 4
    await post.passes(5 * SECOND)
    assert sorted(copies(await ids(post))) == sorted(f"o-{num}~2" for num in range(1, 8))


async def test_who_reads_many_at_once_keeps_others_waiting_so_there_are_no_more_than_that(post: Post) -> None:
    await many_failed(post, RETRIED_AT_ONCE + 20)
    await post.passes(SECOND)
    [incident] = await post.scene.store.client.incidents("default", EVERY)
    await post.scene.store.client.order_incident("default", incident.id, "ada", RETRY, 10_000, failed=True)
    await post.passes(SECOND // 2)
    assert len(copies(await ids(post))) == RETRIED_AT_ONCE
    await post.passes(SECOND)
    assert len(copies(await ids(post))) == RETRIED_AT_ONCE + 20


async def test_who_fails_again_is_not_tried_for_ever(post: Post) -> None:
    await many_failed(post, 1)
    await post.passes(SECOND)
    [incident] = await post.scene.store.client.incidents("default", EVERY)
    await post.scene.store.client.order_incident("default", incident.id, "ada", RETRY, 5, failed=True)
    post.clock.pass_by(1)
    await failed(post.scene, 2)  # as what goes on may do
    await post.passes(10 * SECOND)
    assert copies(await ids(post)) == ["o-1~2"]
    [still] = await post.scene.store.client.incidents("default", EVERY)
    assert (still.id, still.waiting, still.state.word) == (incident.id, 1, "open")


async def test_what_is_not_seen_again_is_resolved_and_says_so(post: Post) -> None:
    await many_failed(post, 3)
    await post.passes(SECOND)
    post.clock.pass_by(NOT_SEEN_FOR)
    post.told.clear()
    await post.passes(10 * SECOND)
    [event] = [event for event in post.told if event.kind == INCIDENT_RESOLVED]
    assert event.note.endswith("; not seen again; runs that nobody has seen to: 3")
    post.told.clear()
    await post.passes(10 * SECOND)
    assert post.told == []


async def test_who_has_nothing_new_to_see_does_not_look_before_it_may_be_over(post: Post) -> None:
    [room] = post.rooms
    await many_failed(post, 10)
    await post.passes(SECOND)
    room.hint()
    post.clock.pass_by(SECOND)
    wish = await room.turn()
    assert wish is not None
    assert wish > NOT_SEEN_FOR - 10 * SECOND


async def test_an_order_is_done_when_the_last_page_was_full(post: Post) -> None:
    await many_failed(post, 4)
    await post.passes(SECOND)
    [incident] = await post.scene.store.client.incidents("default", EVERY)
    await post.scene.store.client.order_incident("default", incident.id, "ada", RETRY, 2, failed=True)
    post.clock.pass_by(1)
    await failed(post.scene, 5)
    await post.passes(6 * SECOND)
    assert len(copies(await ids(post))) == 4
    assert (await post.scene.store.supervisor.muster(LIMIT)).orders == ()
    skip = msgspec.json.encode(Resolution(Action.SKIP, "nobody wants it"))
    await post.scene.store.client.order_incident("default", incident.id, "bob", skip, 1, failed=True)
    await post.passes(2 * SECOND)
    assert len(post.heard(INCIDENT_RESOLVED)) == 1
