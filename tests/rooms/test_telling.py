"""Why a run is not moving and who acts next; and what is told of all of them: what broke, and how it was cured."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from watchbill import (
    App,
    Done,
    Escalate,
    Handle,
    Limit,
    Permanent,
    Retry,
    RunFailed,
    RunUndone,
    Switch,
    ask,
    attempt,
    gather_settled,
    receive,
    sleep,
    spread,
)
from watchbill.app.hall import Hall
from watchbill.app.status import Because, Explanation
from watchbill.clock import SECOND
from watchbill.env import SystemEnv
from watchbill.model.agent import Act, Answer, Report, Room
from watchbill.model.attempt import AttemptRow, Progress
from watchbill.model.gate import GateAct
from watchbill.model.report_card import Metrics
from watchbill.store.protocol import Store

NOON = datetime(2027, 1, 15, 12, tzinfo=UTC)


@pytest.fixture
def app(kept: str) -> App:
    return App(kept)


def store_of(app: App) -> Store:
    hall: Any = app._hall
    store: Store = hall._store
    return store


async def says(handle: Handle[Any], because: Because) -> Explanation:
    """Ask a run why it stands still, until it says so."""
    async with asyncio.timeout(LONG):
        while True:
            said = await handle.explain()
            if because in {one.because for one in said.reasons}:
                return said
            await asyncio.sleep(0)


async def tells(handle: Handle[Any], words: str) -> Explanation:
    """Ask a run how it stands, until it says so: what it had under way is judged when it has ended."""
    async with asyncio.timeout(LONG):
        while words not in str(said := await handle.explain()):
            await asyncio.sleep(LOOK_EVERY)
    return said


def next_of(said: Explanation, because: Because) -> str:
    return next(one.next for one in said.reasons if one.because is because)


# --- why it is not moving


async def test_a_run_says_what_it_waits_for_and_who_brings_it(app: App) -> None:
    @app.workflow
    async def naps() -> None:
        await sleep("1h")

    @app.workflow
    async def listens() -> None:
        await receive("go", bool)

    @app.workflow
    async def has_child() -> None:
        await naps()

    @app.workflow
    async def asks() -> None:
        await ask("ship it?", form=bool, to="team", within="1h", escalate_to="boss")

    @app.workflow
    async def idles() -> None:
        await asyncio.get_running_loop().create_future()

    async with app.rooms():
        later = await app.start(naps, id="later", delay="1h")
        assert next_of(await says(later, Because.BEGINS_LATER), Because.BEGINS_LATER) == "its scheduler"
        said = await says(await app.start(naps, id="naps"), Because.SLEEP)
        assert said.facts["when"] == said.facts["wakes_at"]
        said = await says(await app.start(listens, id="listens"), Because.MESSAGE)
        assert said.facts["next"] == "a client that sends 'go': `watchbill run send listens go JSON`"
        assert "run 'parent/naps'" in str(await says(await app.start(has_child, id="parent"), Because.CHILD_RUN))
        assert "It is held" in str(await says(await app.start(idles, id="idles"), Because.WAITS_FOR_NOTHING))
        asked = await app.start(asks, id="asks")
        said = await says(asked, Because.QUESTION)
        assert next_of(said, Because.QUESTION) == "somebody of 'team'"
        assert "then 'boss' is asked" in str(said)
        [item] = await app.inbox()
        await app.claim(item.id, by="ada")
        assert next_of(await says(asked, Because.QUESTION), Because.QUESTION) == "ada"
        paused = app.handle("listens", listens)
        await paused.pause("stock-taking")
        assert "whoever resumes it" in str(next_of(await says(paused, Because.PAUSED), Because.PAUSED))
    assert next_of(await says(asked, Because.NO_SCHEDULER), Because.NO_SCHEDULER) == "whoever opens rooms on this store"


async def test_a_run_that_asks_waits_for_that_person_and_is_found_by_it(app: App) -> None:
    @app.step(retry=0, then=[Escalate("team")])
    async def escalates() -> None:
        raise ConnectionError("no")

    @app.workflow
    async def asks(within: str | None) -> bool:
        return bool(await ask("ship it?", form=bool, to="team", within=within))

    @app.workflow
    async def both() -> None:
        await asyncio.gather(ask("ship it?", form=bool, to="team"), escalates())

    @app.workflow
    async def listens() -> bool:
        return await receive("it's done", bool, timeout="2d")

    async with app.rooms():
        for id, within in (("asks", None), ("asks-within", "2h")):
            asked = await app.start(asks, within, id=id)
            said = await says(asked, Because.QUESTION)
            assert said.facts["next"] == "somebody of 'team'"
            assert said.facts["when"] == said.facts.get("wakes_at")  # then it is withdrawn
            assert (said.facts["when"] is None) is (within is None)
            status = await asked.status()
            assert (status.state, status.health) == ("waiting", "waiting_for_person")
        await says(await app.start(both, id="both"), Because.ESCALATE)
        assert [run.id async for run in app.runs(health="waiting_for_person")] == ["both", "asks-within", "asks"]
        assert [run.id async for run in app.runs(status="waiting")] == ["both", "asks-within", "asks"]
        assert [run.id async for run in app.runs(health="retrying")] == []
        said = await says(await app.start(listens, id="listens"), Because.MESSAGE)
        command = """`watchbill run send listens 'it'"'"'s done' JSON`"""
        assert said.facts["next"] == f'a client that sends "it\'s done": {command}'
        assert said.facts["when"] == said.facts["wakes_at"]


async def test_a_call_says_what_keeps_it_and_which_agent_has_it(app: App) -> None:
    may_end, gates = asyncio.Event(), cast(Hall, app._hall)

    @app.step
    async def works() -> None:
        attempt().progress(1, 2)
        await may_end.wait()

    @app.step(needs="gpu")
    async def renders() -> None: ...

    @app.step(limit=Limit(at_once=1))
    async def limited() -> None:
        await may_end.wait()

    @app.step
    async def stopped() -> None: ...

    @app.step(retry=Retry(1, backoff="1h"))
    async def fails() -> None:
        raise ConnectionError("not yet")

    @app.step(retry=Retry(0), then=[Escalate("team")])
    async def escalates() -> None:
        raise ConnectionError("no")

    @app.workflow
    async def all_of_them() -> None:
        await asyncio.gather(works(), renders(), limited(), limited(), stopped(), fails(), escalates())

    async with app.rooms():
        await gates.order_gate("step:stopped", GateAct.PAUSE, by="ann", reason="stock-taking")
        handle = await app.start(all_of_them, id="o")
        for because in (Because.AT_ONCE, Because.BACKOFF, Because.ESCALATE, Because.PAUSED_BY_NAME):
            await says(handle, because)
        said = await says(handle, Because.AT_WORK)
        who = {one.call: (one.because, one.next) for one in said.reasons}
        [agent] = await app.agents()
        assert who["works"] == (Because.AT_WORK, f"agent {agent.name}")
        assert who["renders"] == (Because.NOBODY_CAPABLE, "whoever starts such an agent")
        assert Because.AT_ONCE in (who["limited"][0], who["limited.2"][0])
        assert who["stopped"] == (Because.PAUSED_BY_NAME, "whoever opens 'step:stopped'")
        assert who["fails"] == (Because.BACKOFF, "the supervisor")
        assert who["escalates"] == (Because.ESCALATE, "somebody of 'team'")
        assert said.facts["when"] is not None
        json.dumps(said.facts["reasons"], default=str)
        await handle.cancel()
        may_end.set()
        await becomes(handle, lambda status: status.state == "cancelled")


async def test_a_call_that_finds_no_room_says_what_is_before_it(app: App) -> None:
    may_end = asyncio.Event()

    @app.step(needs={"gpu": 1})
    async def renders() -> None:
        await may_end.wait()

    @app.workflow
    async def film() -> None:
        await renders()

    async with app.rooms(needs={"gpu": 1}):
        first = await app.start(film, id="f-1")
        await says(first, Because.AT_WORK)
        second = await app.start(film, id="f-2")
        said = await says(second, Because.AGENTS_FULL)
        assert "the agent that could take it has no room for gpu=1" in str(said)
        third = await app.start(film, id="f-3")
        assert "1 more urgent before it" in str(await says(third, Because.AGENTS_FULL))
        may_end.set()
        for handle in (first, second, third):
            await ends(handle)


@pytest.mark.parametrize("name", ["step:charge", "workflow:order", "needs:till", "limit:charge"])
async def test_a_pause_is_said_before_a_dependency_that_is_down(app: App, ear: Ear, name: str) -> None:
    gates = cast(Hall, app._hall)

    @app.step(uses="stripe", needs="till", limit=Limit(at_once=1))
    async def charge() -> None: ...

    @app.workflow
    async def order() -> None:
        await charge()

    async with app.rooms(needs="till"):
        await ends(await app.start(order))  # a limit has to be there before it can be paused
        await gates.order_gate("uses:stripe", GateAct.CLOSE, by="bob", reason="maintenance")
        await ear.hears("gate.opened")
        handle = await app.start(order, id="o")
        await says(handle, Because.BREAKER_OPEN)
        await gates.order_gate(name, GateAct.PAUSE, by="ann", reason="stop charge")
        said = await says(handle, Because.PAUSED_BY_NAME)
        assert said.facts["next"] == f"whoever opens '{name}'"
        [one] = said.reasons
        assert f"waits for '{name}', paused by ann since " in one.said
        assert f"(stop charge): `watchbill gates open {name}`; also down is dependency 'stripe': " in one.said
        assert "tries now" not in str(said)
        await gates.order_gate(name, GateAct.OPEN, by="ann")
        await gates.order_gate("uses:stripe", GateAct.OPEN, by="bob")
        await ends(handle)


async def test_a_call_whose_only_agent_is_quarantined_says_which_and_how_to_release_it(app: App) -> None:
    orders = cast(Hall, app._hall)

    @app.step(needs="gpu", limit=Limit(at_once=1))  # it is leased, also where the scheduler could run it itself
    async def renders() -> None: ...

    @app.step(needs="tape")
    async def archives() -> None: ...

    @app.workflow
    async def film() -> None:
        await renders()

    @app.workflow
    async def archive() -> None:
        await archives()

    async with app.rooms(needs="gpu"):
        await ends(await app.start(film))  # its agent has joined
        [agent] = await app.agents()
        await orders.order_agent(agent.name, wish="quarantine")
        handle = await app.start(film, id="f")
        said = await says(handle, Because.AGENTS_QUARANTINED)
        assert f"but agent {agent.name}, which could take it, is quarantined" in str(said)
        assert f"`watchbill agents release {agent.name}`" in str(said)
        assert said.facts["next"] == f"whoever releases agent {agent.name}"
        assert (await handle.status()).health == "waiting_for_agent"
        await says(await app.start(archive, id="a"), Because.NO_AGENT)  # to release it would not help
        await orders.order_agent(agent.name, wish="none")
        await ends(handle)


async def test_what_is_asked_of_a_run_while_no_scheduler_is_there_waits_for_whoever_opens_rooms(app: App) -> None:
    @app.workflow
    async def naps() -> None:
        await sleep("1h")

    async with app.rooms():
        handle = await app.start(naps, id="n")
        await says(handle, Because.SLEEP)
    await handle.cancel("too late")
    said = await says(handle, Because.NO_SCHEDULER)
    assert [one.because for one in said.reasons][:2] == [Because.TOLD, Because.NO_SCHEDULER]
    assert said.sentences[-1] == "Next: whoever opens rooms on this store."
    assert (said.facts["next"], said.facts["when"]) == ("whoever opens rooms on this store", None)


async def test_a_run_that_failed_tells_what_went_wrong_on_the_way(app: App) -> None:
    @app.step(retry=Retry(1, backoff="1ms"))
    async def fails() -> None:
        raise ConnectionError("no route")

    @app.workflow
    async def order() -> None:
        await fails()

    async with app.rooms():
        handle = await app.start(order, id="o")
        with pytest.raises(RunFailed):
            await ends(handle)
        [agent] = await app.agents()
        lines = (await handle.explain()).sentences
        tried = [line.split("Z ", 1)[1] for line in lines if line.startswith("  ")]
        assert tried[0] == f"step failed fails, attempt 1 on agent {agent.name}: raised: ConnectionError: no route"
        assert [line.split(" fails", 1)[0] for line in tried] == [
            "step failed", "retry later", "retry", "step failed", "give up", "step gave up",
        ]  # fmt: skip


async def test_every_verdict_says_what_was_not_chosen_and_what_became_of_it(app: App) -> None:
    tries: list[int] = []

    @app.step(retry=Retry(1, backoff="1ms"), then=[Switch(way="other"), Escalate("team")])
    async def fails(way: str = "first") -> None:
        tries.append(1)
        if len(tries) < 5:
            raise ConnectionError("no route")

    @app.step(retry=Retry(0))
    async def gives_up() -> None:
        raise ConnectionError("no")

    @app.workflow
    async def order() -> None:
        await fails()
        await gives_up()

    async with app.rooms():
        handle = await app.start(order, id="o")
        said = await says(handle, Because.ESCALATE)
        assert "; not retry: all 1 are used up." in str(said)
        [decided] = [call["decision"] for call in said.facts["calls"]]
        assert decided["rejected"] == ("retry: all 1 are used up",)
        [waits] = [event for event in await handle.timeline() if event.kind == "ask_a_person"]
        assert waits.outcome == "nobody has decided yet"
        [item] = await app.inbox()
        await app.resolve(item.id, "retry", by="ada", reason="the route is back")
        with pytest.raises(RunFailed):
            await ends(handle)
        told = [event for event in await handle.timeline() if event.actor == "supervisor" and event.rejected]
        lines = str(await handle.explain())
    assert [(event.kind, event.rejected, event.outcome) for event in told] == [
        ("retry_later", ("switch: retries are left",), "failed again: raised"),
        ("switch", ("retry: all 1 are used up", "give up: another way is left"), "failed again: raised"),
        ("retry_later", ("ask a person: retries are left",), "failed again: raised"),
        ("ask_a_person", ("retry: all 1 are used up",), "ada decided: retry"),
        ("give_up", ("retry: it has none", "switch: it has no other way"), "its run is failed"),
    ]
    assert "(not retry: it has none; not switch: it has no other way) -> its run is failed" in lines


async def test_a_run_past_its_deadline_says_so_and_is_counted(app: App) -> None:
    @app.workflow
    async def naps() -> None:
        await sleep("1h")

    async with app.rooms():
        handle = await app.start(naps, id="n", deadline="20ms")
        with pytest.raises(RunFailed):
            await ends(handle)
        [stopped] = [event for event in await handle.timeline() if event.kind == "stop_at_its_deadline"]
        assert (stopped.actor, stopped.outcome) == ("scheduler", "its run is failed")
        assert stopped.rejected == ("let it go on: nobody has given it more time",)
        assert stopped.note.startswith("its deadline, ")
        said = str(await handle.explain())
        assert "The cause was its deadline, " in said
        assert "its own code" not in said
        [card] = (await app.metrics()).cards
    assert (card.symptom, card.found, card.given_up) == ("deadline", 1, 1)
    assert card.detected is not None
    assert card.detected.worst.total_seconds() < LONG


async def test_what_was_undone_is_told_by_the_undos_that_were_made(app: App) -> None:
    undone: list[str] = []

    @app.step
    async def reserve(room: str) -> str:
        return room

    @reserve.undo
    async def release(result: str, room: str) -> None:
        undone.append(room)

    @app.step(idempotent=False)
    async def pay() -> None:
        raise ConnectionError("the line is dead")

    @app.workflow
    async def trip(pays: bool) -> None:
        await asyncio.gather(reserve("101"), reserve("102"))
        await (pay() if pays else sleep("1h"))

    @app.workflow
    async def only_pays() -> None:
        await pay()

    async with app.rooms():
        late = await app.start(trip, False, id="late", deadline="1s")
        with pytest.raises(RunUndone, match="late"):
            await ends(late)
        said = await late.explain()
        assert "Undone, in this order: 'reserve.2', 'reserve'." in said.sentences
        assert (undone, said.facts["undone"]) == (["102", "101"], ["reserve.2", "reserve"])
        assert "Nothing was undone" not in str(said)
        assert {step.state for step in (await late.status()).steps if "undo" not in step.key} == {"undone"}

        stopped = await app.start(only_pays, id="stopped")
        await says(stopped, Because.DOUBT)
        [item] = await app.inbox()
        await app.resolve(item.id, "undo", by="ada", reason="nobody answers")
        with pytest.raises(RunFailed):
            await ends(stopped)
        said = await tells(stopped, "Whether 'pay' took effect nobody knows, and nothing has undone it")
        assert "The cause was ada, who stopped it as a failure, to have it undone: nobody answers." in said.sentences
        assert (said.facts["undone"], said.facts["may_have_taken_effect"], said.facts["by"]) == ([], ["pay"], "ada")
        assert "its own code" not in str(said)

        for id, how in (
            ("cancelled", "It was cancelled: never mind."),
            ("aborted", "It was cancelled by ada: enough."),
        ):
            handle = await app.start(trip, True, id=id)
            await says(handle, Because.DOUBT)
            if id == "cancelled":
                await handle.cancel("never mind")
            else:
                [item] = await app.inbox()
                await app.resolve(item.id, "abort", by="ada", reason="enough")
            await becomes(handle, lambda status: status.state == "cancelled")
            said = await tells(handle, "Whether 'pay' took effect nobody knows")
            assert how in said.sentences
            assert "Undone, in this order: 'reserve.2', 'reserve'." in said.sentences
            assert said.facts["may_have_taken_effect"] == ["pay"]


async def test_a_run_that_was_cured_on_the_way_says_what_was_cured_and_how(app: App) -> None:
    async def is_there() -> Done:
        return Done("there")

    @app.step(retry=Retry(1, backoff="1ms"), then=[Switch(codec="safe")])
    async def encode(codec: str = "fast") -> str:
        if codec == "fast":
            raise ConnectionError("no")
        return codec

    @app.step(retry=Retry(2, backoff="1ms"))
    async def flaky() -> None:
        if attempt().number == 1:
            raise ConnectionError("not yet")

    @app.step(idempotent=False, probe=is_there)
    async def pay() -> str:
        raise ConnectionError("the line is dead")

    @app.step(retry=0)
    async def optional() -> None:
        raise ConnectionError("never")

    @app.step
    async def plain() -> None: ...

    @app.workflow
    async def film(fails: bool) -> None:
        await plain()
        if fails:
            await encode()
            await flaky()
            await pay()
            await gather_settled(optional())

    async with app.rooms():
        well = await app.start(film, False, id="well")
        await ends(well)
        assert len((await well.explain()).sentences) == 1
        cured = await app.start(film, True, id="cured")
        await ends(cured)
        said = await cured.explain()
    assert said.sentences[1:] == [
        "On the way 4 calls were in trouble:",
        "  'encode' failed 2 times, the last time with ConnectionError: no; attempt 3 was done, another way (rung 1)",
        "  'flaky' failed once with ConnectionError: not yet; attempt 2 was done",
        "  'pay' failed once with ConnectionError: the line is dead; its probe said that it had taken effect",
        "  'optional' failed once with ConnectionError: never; it failed for good, and the workflow went on",
    ]
    assert [one["call"] for one in said.facts["recovered"]] == ["encode", "flaky", "pay", "optional"]


async def test_a_run_says_when_it_will_probably_have_ended_and_how_much_is_done(app: App) -> None:
    may_end, done = asyncio.Event(), 0

    @app.step
    async def chunk(n: int) -> None:
        nonlocal done
        if n >= 6:
            attempt().progress(1, 2)  # so it is seen
            await may_end.wait()
        done += 1

    @app.workflow
    async def film() -> None:
        await spread(chunk, list(range(8)))

    async with app.rooms():
        handle = await app.start(film, id="f")
        status = await becomes(handle, lambda status: done == 6 and len(status.steps) == 8)
        asked_at = datetime.now(UTC)
        assert status.expected_end is not None
        assert abs(status.expected_end - asked_at) < timedelta(seconds=LONG)
        assert status.percent is not None
        assert 0 < status.percent < 100
        assert (status.progress or Progress(0)).done == 6
        await handle.pause("stock-taking")
        paused = await becomes(handle, lambda status: status.paused)
        assert paused.expected_end is None, "somebody must let it go on first"
        await handle.resume()
        may_end.set()
        await ends(handle)
        status = await handle.status()
        assert (status.expected_end, status.percent) == (None, 100)


async def test_who_accepted_and_never_called_back_is_named_and_counted(app: App) -> None:
    @app.step
    async def hand_over() -> str:
        return "printed:o-1"

    @app.workflow
    async def order(alone: bool) -> str:
        topic = await hand_over()
        try:
            return await receive(topic, str, timeout="20ms")
        except TimeoutError:
            if alone:
                raise
        assert await receive("other", str, timeout="1ms", default="none") == "none"
        return await receive("again", str)

    async with app.rooms():
        failed = await app.start(order, True, id="fails")
        with pytest.raises(RunFailed):
            await ends(failed)
        goes_on = await app.start(order, False, id="goes-on")
        await becomes(goes_on, lambda status: "'again'" in str(status.waiting_for))
        said = str(await goes_on.explain())
        assert "Nobody called back on 'printed:o-1' for 20ms, until " in said
        [open_one] = [event for event in await goes_on.timeline() if event.kind == "unanswered"]
        assert (open_one.step, open_one.outcome) == ("receive:printed:o-1", "its run goes on")
        [card] = (await app.metrics()).cards
        assert (card.symptom, card.found, card.given_up, card.open) == ("unanswered", 2, 1, 1), "none for a default"
        await goes_on.send("again", "late")
        assert await ends(goes_on) == "late"
        [event] = [event for event in await failed.timeline() if event.kind == "unanswered"]
        assert event.note == "nobody called back on 'printed:o-1' for 20ms"
        assert "Nobody called back on 'printed:o-1' for 20ms, until " in str(await failed.explain())
        [card] = (await app.metrics()).cards
    assert (card.found, card.given_up, card.another_way) == (2, 1, 1)


# --- what is told of all of them


async def haunt(app: App, agent: int, step: str) -> AttemptRow:
    """Let an agent of ours join, which nobody else knows, and lease what only it can do."""
    doors, identity = store_of(app).agent, SystemEnv().process_identity()
    await doors.join(agent, "default", "", f"ghost-{agent}", identity, 60 * SECOND, needs=("ghost",), slots=1)
    async with asyncio.timeout(LONG):
        for lease_no in range(1, 1_000_000):
            queues = [queue.id for queue in await doors.queues("default", "") if queue.needs == ("ghost",)]
            if queues and (leased := await doors.lease(agent, lease_no, queues, Room(1, 1, (step,)))):
                return leased[0]
            await asyncio.sleep(0)
    raise AssertionError


async def test_a_result_that_comes_too_late_is_told(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    began, may_end = asyncio.Event(), asyncio.Event()

    @app.step(limit=Limit(at_once=9))  # so it has a row
    async def works() -> int:
        began.set()
        await may_end.wait()
        return 1

    @app.workflow
    async def order() -> int:
        return await works()

    ear = Ear(app)
    async with app.rooms():
        handle = await app.start(order, id="o")
        async with asyncio.timeout(LONG):
            await began.wait()
        report = store_of(app).agent.report

        async def late(agent: int, reports: Sequence[Report]) -> list[Answer]:
            """Let it be somebody else's by the time that it is reported."""
            monkeypatch.setattr(store_of(app).agent, "report", report)
            fenced = [one._replace(fence=one.fence - 1) for one in reports]
            return await report(agent, fenced)

        monkeypatch.setattr(store_of(app).agent, "report", late)
        may_end.set()
        [told] = await ear.hears("result.refused")
        assert (told.run, told.step, told.call, told.actor) == ("o", "works", "works", "agent")
        assert told.duration is not None
        await handle.cancel()
        await becomes(handle, lambda status: status.state == "cancelled")


async def test_who_listens_hears_now_and_then_how_things_go(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watchbill.app.gauge.METRICS_EVERY", SECOND // 100)

    @app.step(retry=Retry(1, backoff="1ms"))
    async def flaky() -> None:
        if attempt().number == 1:
            raise ConnectionError("no")

    @app.workflow
    async def order() -> None:
        await flaky()

    async with app.rooms():
        await ends(await app.start(order))
        ear = Ear(app)  # from now on
        [told, *_] = await ear.hears("metrics")
        ear.close()
        asked = await app.metrics()
    assert isinstance(told.value, Metrics)
    assert (told.actor, told.at) == ("supervisor", round(told.value.until.timestamp() * SECOND))
    assert _undated(told.value) == _undated(asked)
    assert (told.value.completed, told.value.retries, told.value.queue_age) == (1, 1, timedelta())


def _undated(metrics: Metrics) -> Metrics:
    """Give all that is measured but the times at which it was."""
    return msgspec.structs.replace(metrics, since=NOON, until=NOON)


async def test_the_report_card_says_what_was_done_to_the_runs(app: App) -> None:
    never, tries = asyncio.Event(), set[str]()

    def is_first(step: str) -> bool:
        return step not in tries and not tries.add(step)  # type: ignore[func-returns-value]

    @app.step(retry=Retry(1, backoff="1ms"))
    async def flaky() -> None:
        if is_first("flaky"):
            raise ConnectionError("no")

    @app.step(timeout="100ms", retry=Retry(1, backoff="1ms"))
    async def hangs() -> None:
        if is_first("hangs"):
            await never.wait()

    @app.step(stall="50ms", retry=Retry(1, backoff="1ms"))
    async def sticks() -> None:
        attempt().progress(1, 2)
        if is_first("sticks"):
            await never.wait()

    @app.step(retry=Retry(0), then=[Switch(way="other")])
    async def switches(way: str = "first") -> None:
        if way == "first":
            raise ConnectionError("no")

    @app.step
    async def refuses() -> None:
        raise Permanent("no")

    @app.step(needs="ghost")
    async def haunted() -> int:
        return 0

    @app.workflow
    async def order(step: str) -> None:
        steps: dict[str, Any] = {
            "flaky": flaky, "hangs": hangs, "sticks": sticks, "switches": switches, "refuses": refuses,
            "haunted": haunted,
        }  # fmt: skip
        await steps[step]()

    names = ("flaky", "hangs", "sticks", "switches", "refuses")
    async with app.rooms():
        ear = Ear(app)
        for handle in [await app.start(order, name, id=name) for name in names]:
            if handle.id == "refuses":
                with pytest.raises(RunFailed):
                    await ends(handle)
            else:
                await ends(handle)
        # By then: beside an agent of another process silence is judged later.
        ghostly = await app.start(order, "haunted", id="haunted")
        lost = await haunt(app, 71, "haunted")
        assert "ghost-71" in str(await says(ghostly, Because.AT_WORK))
        await store_of(app).supervisor.bury([71])
        moved = await haunt(app, 72, "haunted")
        done = Report(moved.id, moved.fence, Act.DONE, b"1", run=moved.run, call=moved.call)
        assert await store_of(app).agent.report(72, [done]) == [Answer.ACCEPTED]
        await ends(ghostly)
        late = Report(lost.id, lost.fence, Act.DONE, b"1", run=lost.run, call=lost.call)
        assert await store_of(app).agent.report(71, [late]) == [Answer.LATE]
        assert "refuse_late_result" in [event.kind for event in await ghostly.timeline()]
        told = await ear.hears("step.recovered", times=5)
        assert {event.run for event in told} == {*names, "haunted"} - {"refuses"}
        for event in told:
            assert event.duration is not None
            assert 0 <= (event.detected or 0) <= event.duration < LONG * SECOND
        assert None not in [event.detected for event in told], "a loss says when its agent was last heard"
        [stuck] = ear.of("step.recovered", "sticks")
        assert stuck.detected is not None
        assert stuck.detected >= 1.05 * SECOND
        ear.close()
        found = await app.metrics()
    assert (found.runs, found.ended, found.completed, found.success_rate) == (6, 6, 5, 5 / 6)
    assert (found.retries, found.retries_per_run) == (5, 5 / 6)
    assert (found.stalls, found.late_results, found.queued) == (1, 1, 0)
    cards = {card.symptom: card for card in found.cards}
    assert {name: (card.found, card.again, card.elsewhere, card.another_way, card.given_up, card.open)
            for name, card in cards.items()} == {
        "raised": (3, 1, 0, 1, 1, 0),
        "late": (1, 1, 0, 0, 0, 0),
        "stalled": (1, 1, 0, 0, 0, 0),
        "lost": (1, 0, 1, 0, 0, 0),
    }  # fmt: skip
    detected, recovered = found.detected, found.recovered
    assert detected is not None
    assert recovered is not None
    assert (detected.count, recovered.count) == (6, 5), "each was found, and all but one were cured"
    for card in cards.values():
        assert card.detected is not None
        assert 0 <= card.detected.worst.total_seconds() < LONG
    stalled = cards["stalled"]
    assert stalled.detected is not None
    assert stalled.recovered is not None
    assert 1.05 <= stalled.detected.median.total_seconds() <= stalled.recovered.median.total_seconds() < LONG
