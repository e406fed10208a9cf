"""An operator changes the policy of live runs without a deploy, gives them more time, and resumes what stands still."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from watchbill import App, InvalidOptionError, Retry, RunCancelled, RunEnded, RunFailed, attempt, receive
from watchbill.model.incident import Incident


class Work:
    """A step that a test ends, and how often it was begun."""

    def __init__(self) -> None:
        self.begun = 0
        self.fails = 0  # so many times
        self._change = asyncio.Event()
        self._done = asyncio.Event()

    async def do(self) -> int:
        self.begun += 1
        number = self.begun
        self._change.set()
        if number <= self.fails:
            raise ConnectionError("no answer")
        await self._done.wait()
        return number

    def finish(self) -> None:
        self._done.set()

    async def has_begun(self, times: int) -> None:
        async with asyncio.timeout(LONG):
            while self.begun < times:
                self._change.clear()
                await self._change.wait()


def a_program(app: App, work: Work, **options: Any) -> Any:
    @app.step(**options)
    async def charge() -> int:
        attempt().progress(work.begun)  # it has its row from the start
        return await work.do()

    @app.workflow
    async def order() -> int:
        return await charge()

    return order


async def test_what_runs_is_late_by_a_shorter_timeout_and_every_decision_says_whose_it_is(app: App, ear: Ear) -> None:
    work = Work()
    order = a_program(app, work, timeout="1h", retry=Retry(3, backoff=0))
    async with app.rooms():
        handle = await app.start(order, id="o")
        await work.has_begun(1)
        await becomes(handle, lambda status: status.steps and status.steps[0].state == "running")
        await app.set_policy("charge", {"timeout": "50ms"}, reason="it hangs", by="ann")
        await ear.hears("step.late", "o")
        await work.has_begun(2)
        await app.set_policy("charge", {"timeout": "2h", "retries": 9}, reason="it is slow", by="bob")
        said = str(await handle.explain())
        assert "timeout 2h instead of 1h, retries 9 instead of 3, by bob" in said
        assert "(it is slow)" in said
        work.finish()
        assert await ends(handle) >= 2
        late = [event for event in await handle.timeline() if event.kind == "mark_failed"]
        assert "timeout 50ms instead of 1h, by ann" in late[0].note
        assert "(it hangs)" in late[0].note
        [policy] = await app.policies()
        assert (policy.step, policy.changes, policy.by) == ("charge", {"timeout": 7_200.0, "retries": 9}, "bob")


async def test_more_retries_count_for_what_has_failed_already_and_a_clear_gives_back_what_the_code_says(
    app: App, ear: Ear
) -> None:
    work = Work()
    work.fails = 3
    order = a_program(app, work, retry=Retry(1, backoff="1h"))
    async with app.rooms():
        handle = await app.start(order, id="o")
        await ear.hears("step.retried", "o")
        await app.set_policy("charge", {"retry": {"times": 5, "backoff": 0}}, reason="it is down")
        await handle.retry(reason="now")
        await work.has_begun(4)
        work.finish()
        assert await ends(handle) == 4
        await app.clear_policy("charge", reason="it is up")
        assert await app.policies() == []
        work.begun, work.fails = 0, 9
        second = await app.start(order, id="p")
        await ear.hears("step.retried", "p")
        assert "at most 2" in str(await second.explain())
        await second.cancel()
        with pytest.raises(RunCancelled):
            await ends(second)


async def test_a_call_that_begins_after_the_order_is_judged_by_it(app: App) -> None:
    work = Work()
    work.fails = 9
    order = a_program(app, work, retry=Retry(3, backoff=0))
    await app.set_policy("charge", {"retry": 0}, reason="no use")
    async with app.rooms():
        with pytest.raises(RunFailed, match="no answer"):
            await ends(await app.start(order))
        assert work.begun == 1
        await app.clear_policy("charge", reason="it may help")
        with pytest.raises(RunFailed):
            await ends(await app.start(order))
        assert work.begun == 5


async def test_what_is_no_step_or_no_option_changes_nothing(app: App) -> None:
    await app.start(a_program(app, Work()))
    for step, changes, said in (
        ("chrage", {"timeout": "1s"}, "did you mean 'charge'"),
        ("nothing", {"timeout": "1s"}, "there are: charge"),
        ("charge", {"timeuot": "1s"}, "a live policy has no option 'timeuot'"),
    ):
        with pytest.raises(InvalidOptionError, match=said):
            await app.set_policy(step, changes, reason="slow")
    with pytest.raises(InvalidOptionError, match="reason is text"):
        await app.set_policy("charge", {"timeout": "1s"}, reason="")
    with pytest.raises(InvalidOptionError, match="nothing is changed of the policy of step 'charge'"):
        await app.clear_policy("charge", reason="over")
    assert await app.policies() == []


async def test_whose_word_counts_is_shown_for_each_option(app: App, ear: Ear) -> None:
    work = Work()
    work.fails = 1

    @app.step(retry=Retry(2, backoff="1h"))
    async def charge() -> int:
        return await work.do()

    @app.workflow(timeout="20m", retry=7)
    async def order() -> int:
        return await charge()

    async with app.rooms():
        handle = await app.start(order, id="o")
        await ear.hears("step.retried", "o")
        explained = await handle.explain()
        assert "2 retries from its step, a timeout of 20m from its workflow" in str(explained)
        [call] = explained.facts["calls"]
        assert call["policy"]["stall"] == {"seconds": None, "from": "the default"}
        await app.set_policy("charge", {"retries": 4}, reason="down")
        [call] = (await handle.explain()).facts["calls"]
        assert call["policy"]["retry"] == {"times": 4, "from": "an operator"}


# --- more time


async def test_a_call_is_given_more_time_and_it_is_recorded(app: App, ear: Ear) -> None:
    work = Work()
    order = a_program(app, work, timeout="1h")
    async with app.rooms():
        handle = await app.start(order, id="o")
        await work.has_begun(1)
        await becomes(handle, lambda status: status.steps and status.steps[0].state == "running")
        with pytest.raises(InvalidOptionError, match="no deadline"):
            await handle.extend("30m", reason="slow")
        with pytest.raises(InvalidOptionError, match="no open call 'ship'; there are: charge"):
            await handle.extend("30m", reason="slow", call="ship")
        await handle.extend("30m", reason="slow disks", call="charge")
        await app.set_policy("charge", {"timeout": "1ms"}, reason="an exercise")
        assert "30m more" in "".join(event.note for event in await handle.timeline() if event.kind == "extend")
        left = (await handle.explain()).facts["calls"][0]
        assert left["extended"].total_seconds() == 1_800
        work.finish()
        assert await ends(handle) == 1
        assert not ear.of("step.late")


async def test_a_run_is_given_more_time_wherever_it_is(app: App) -> None:
    @app.workflow
    async def waits() -> str:
        return await receive("go", str)

    async with app.rooms():
        handle = await app.start(waits, id="w", deadline="5s")
        await becomes(handle, lambda status: status.state == "waiting")
        await handle.extend("1h", reason="the parts are late")
        later = await app.start(waits, id="later", delay="1h", deadline="2h")
        await later.extend("1h", reason="too")
        async with asyncio.timeout(LONG):
            while not (decided := [event for event in await handle.timeline() if event.kind == "extend"]):
                await asyncio.sleep(LOOK_EVERY)
        assert decided[0].note == "by client: 1h more: the parts are late"
        soon = await app.start(waits, id="soon", deadline="600ms")
        with pytest.raises(RunFailed, match="deadline"):
            await ends(soon)
        await handle.send("go", "on")
        assert await ends(handle) == "on"
        with pytest.raises(RunEnded):
            await handle.extend("1h", reason="too late")


# --- what stands still


def orders(app: App, first: str) -> Any:
    @app.step(name=first)
    async def step() -> int:
        return 1

    @app.workflow
    async def order() -> int:
        done = await step()
        await receive("go", str)
        return done

    return order


async def test_runs_that_diverge_at_one_place_are_one_incident_until_the_fitting_code_is_back(kept: str) -> None:
    before, between, after = App(kept), App(kept), App(kept)
    order, *_ = (orders(app, step) for app, step in ((before, "charge"), (between, "bill"), (after, "charge")))
    ids = ["o-1", "o-2"]
    async with before.rooms():
        for id in ids:
            await becomes(await before.start(order, id=id), lambda status: status.state == "waiting")
    ear = Ear(between)
    async with between.rooms():
        for id in ids:
            await between.handle(id).send("go", "on")
        [opened, *_] = await ear.hears("incident.opened")
        assert opened.cause.startswith("diverged order@1 ")
        incident = await standing(between, 2)
        assert (incident.cause, incident.actions) == (opened.cause, ("resume", "abort"))
        assert "the journal has an outcome of 'charge'" in incident.said
        assert f"incident {incident.id}" in str(await between.handle("o-2").explain())
        with pytest.raises(InvalidOptionError, match="about runs that stand still: resume or abort; got provide"):
            await between.resolve(incident.id, "provide", 1, reason="no")
        with pytest.raises(InvalidOptionError, match="no call of theirs gets other arguments"):
            await between.resolve(incident.id, "retry", args={"n": 1}, reason="no")
        await between.resolve(incident.id, "resume", reason="try it")
        await ear.hears("run.diverged", "o-2", times=2)  # it does not help while the code is this one
        assert (await standing(between, 2)).id == incident.id
    ear = Ear(after)
    async with after.rooms():
        assert [await ends(after.handle(id)) for id in ids] == [1, 1]
        [resolved] = await ear.hears("incident.resolved")
        assert resolved.cause == opened.cause
        assert await after.incidents() == []


async def standing(app: App, members: int) -> Incident:
    """Wait until so many belong to the one incident."""
    async with asyncio.timeout(LONG):
        while True:
            found = await app.incidents()
            if [one.members for one in found] == [members]:
                return found[0]
            await asyncio.sleep(0)


async def test_runs_that_are_held_are_given_up_together(app: App, ear: Ear) -> None:
    @app.workflow
    async def stuck() -> None:
        await asyncio.get_running_loop().create_future()

    async with app.rooms():
        handles = [await app.start(stuck, id=f"s-{n}") for n in range(3)]
        await ear.hears("run.held", times=3)
        incident = await standing(app, 3)
        assert "waits for nothing" in incident.said
        await app.resolve(incident.id, "abort", reason="no use")
        for handle in handles:
            with pytest.raises(RunCancelled, match="no use"):
                await ends(handle)
        await ear.hears("incident.resolved")
        assert len(ear.of("incident.opened")) == 1


# --- a long wait


async def test_a_wait_of_an_hour_survives_whoever_began_it(kept: str) -> None:
    apps = [App(kept), App(kept)]
    works = [Work(), Work()]
    works[0].fails = 1
    patient = Retry(1, backoff="1h", cap="1h")
    order, _ = (a_program(app, work, retry=patient) for app, work in zip(apps, works, strict=True))
    ear = Ear(apps[0])
    async with apps[0].rooms():
        handle = await apps[0].start(order, id="o")
        await ear.hears("step.retried", "o")
        due = (await handle.explain()).facts["calls"][0]["next_attempt_at"]
        assert due - (await handle.status()).steps[0].attempts[0].ended_at >= timedelta(hours=1)
    async with apps[1].rooms():
        handle = apps[1].handle("o")
        await becomes(handle, lambda status: status.health == "retrying")
        assert (await handle.explain()).facts["calls"][0]["next_attempt_at"] == due
        assert works[1].begun == 0
        works[1].finish()
        await handle.retry(reason="it is up")
        assert await ends(handle) == 1
