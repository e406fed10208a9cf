"""What steps usually take is learned from those that succeed; what takes longer is shown, and ended if asked."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.rooms.report import Report
from tests.rooms.scene import Ear, becomes, ends
from watchbill import Ambiguous, App, Done, Event, InvalidOptionError, Limit, Retry, attempt
from watchbill.model.suggestion import ENOUGH
from watchbill.testing.watch import Watch

CURES = {"step.late", "step.stalled", "step.lost", "step.retried", "step.gave_up"}


class Studio:
    """An App in virtual time whose step says how far it is every two seconds, for a minute; or does as it is told."""

    def __init__(self, watch: Watch, **options: Any) -> None:
        self.watch = watch
        self.app = App("sqlite:////nowhere/at/all.db")
        self.told: list[Event] = []
        self.app.events.subscribe(self._hear)

        @self.app.step(**options)
        async def encode(trouble: str) -> int:
            for chunk in range(30):
                if trouble == "hangs" and chunk == 5 and attempt().number == 1:
                    await asyncio.Event().wait()
                if trouble == "pauses" and chunk == 5:
                    await asyncio.sleep(40)
                if trouble == "quiet":
                    await asyncio.sleep(100)
                elif trouble == "holds" and chunk == 5:
                    with attempt().hold("the tape is rewound", within="1h"):
                        await asyncio.sleep(50)
                else:
                    attempt().progress(chunk + 1, total=30)
                await asyncio.sleep(2)
            return attempt().number

        @self.app.workflow
        async def release(trouble: str = "") -> int:
            return await encode(trouble)

        self.release = release

    def _hear(self, events: Sequence[Event]) -> None:
        self.told.extend(events)

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.told if event.kind == kind]

    def learn(self, times: int = ENOUGH + 5) -> None:
        for _ in range(times):
            assert self.watch.run(self.release) == 1
        self.watch.jump("70s")  # it is told within ten seconds, and read every minute

    def do(self, work: Any) -> Any:
        return self.watch._trials[self.app].do("a question", work)


# --- learning and suggesting


def test_what_steps_take_and_how_they_move_is_learned(watch: Watch) -> None:
    studio = Studio(watch)
    studio.learn()
    [found] = studio.do(studio.app.suggestions)
    assert (found.step, found.rung, found.succeeded, found.failed) == ("encode", 0, ENOUGH + 5, 0)
    timeout, stall = found.budgets
    assert (timeout.rule, timeout.mode, timeout.current) == ("timeout", "observe", timedelta(hours=1))
    assert 57 <= timeout.p50.total_seconds() <= 63
    assert 60 <= timeout.longest.total_seconds() <= 60.5
    assert 171 <= timeout.suggested.total_seconds() <= 190
    assert (stall.rule, stall.mode, stall.current) == ("stall", "observe", None)
    assert 1.8 <= stall.p50.total_seconds() <= 2.2
    assert stall.suggested == timedelta(seconds=30)
    assert stall.count == 30 * (ENOUGH + 5)  # 29 increases after its row was made, and the end


def test_while_little_is_known_nothing_is_suggested_and_nobody_is_slow(watch: Watch) -> None:
    studio = Studio(watch)
    studio.learn(ENOUGH - 1)
    [found] = studio.do(studio.app.suggestions)
    assert found.budgets == ()
    run = studio.watch.start(studio.release, "hangs")
    watch.jump("50m")
    assert run.status().health == "ok"


def test_steps_that_are_quick_in_the_schedulers_own_process_cost_nothing_and_teach_nothing(watch: Watch) -> None:
    app = App("sqlite:////nowhere/at/all.db")

    @app.step
    async def quick() -> None: ...

    @app.workflow
    async def wf() -> None:
        await quick()

    for _ in range(3):
        watch.run(wf)
    watch.jump("1m")
    assert watch._trials[app].do("a question", app.suggestions) == []


def test_probes_teach_nothing_of_the_steps_they_ask_about(watch: Watch) -> None:
    app = App("sqlite:////nowhere/at/all.db")

    async def was_sent(n: int) -> Any:
        for part in range(3):
            attempt().progress(part + 1)
            await asyncio.sleep(2)
        return Done(n)

    @app.step(idempotent=False, probe=was_sent, timeout="2h", learned="enforce")
    async def send(n: int) -> int:
        await asyncio.sleep(600)
        if n < ENOUGH + 5:
            raise Ambiguous("no answer")
        return n

    @app.workflow
    async def sending(n: int) -> int:
        return await send(n)

    handles = [watch.start(sending, n) for n in range(ENOUGH + 5)]
    watch.jump("1h")
    assert [handle.result() for handle in handles] == list(range(ENOUGH + 5))
    [found] = watch._trials[app].do("a question", app.suggestions)
    assert (found.succeeded, found.failed, found.budgets) == (0, ENOUGH + 5, ())
    handle = watch.start(sending, 1_000)  # it takes as long as ever, and nobody ends it for that
    watch.jump("1h")
    assert len(handle.status().steps[0].attempts) == 1
    assert handle.result() == 1_000


def test_time_that_is_quiet_on_purpose_is_no_gap(watch: Watch) -> None:
    studio = Studio(watch)
    for _ in range(ENOUGH):
        studio.watch.run(studio.release, "holds")
    watch.jump("1m")
    [found] = studio.do(studio.app.suggestions)
    assert [round(budget.longest.total_seconds()) for budget in found.budgets] == [110, 2]


# --- slow


def test_what_takes_longer_than_usual_is_shown_told_once_and_left_alone(watch: Watch) -> None:
    studio = Studio(watch)
    studio.learn()
    run = watch.start(studio.release, "hangs", id="r")
    watch.jump("30s")
    assert run.status().health == "ok"
    watch.jump("20s")
    assert run.status().health == "slow"
    assert "it is slow: usually moves within " in str(run.explain())
    watch.jump("50m")
    status = run.status()
    assert (status.health, status.steps[0].attempts[0].number) == ("slow", 1)
    assert "; runs for 3050 s" in str(run.explain())
    [told] = studio.of("step.slow")
    assert (told.run, told.step, told.attempt, told.cause) == ("r", "encode", 1, "slow")
    assert "has not moved for" in told.note
    assert not CURES & {event.kind for event in studio.told}


def test_healthy_but_quiet_work_is_never_cured_by_default(watch: Watch) -> None:
    studio = Studio(watch)
    studio.learn()
    assert watch.run(studio.release, "quiet") == 1  # fifty times as long as usual, and without a word
    assert len(studio.of("step.slow")) == 1
    assert not CURES & {event.kind for event in studio.told}


def test_lists_find_what_is_slow(watch: Watch) -> None:
    studio = Studio(watch)
    studio.learn()
    watch.start(studio.release, "hangs", id="r")
    watch.jump("2m")

    async def slow() -> list[str]:
        return [run.id async for run in studio.app.runs(health="slow")]

    assert studio.do(slow) == ["r"]


def test_what_is_quiet_on_purpose_is_not_slow(watch: Watch) -> None:
    studio = Studio(watch)
    studio.learn()
    run = watch.start(studio.release, "holds")
    watch.jump("50s")  # forty of them without a word
    assert run.status().health == "ok"
    assert studio.of("step.slow") == []
    assert run.result() == 1


# --- enforced


def test_enforced_a_hang_is_found_by_what_was_learned_and_tried_again(watch: Watch) -> None:
    studio = Studio(watch, learned="enforce", retry=Retry(1, backoff="1s"))
    studio.learn()
    began = watch.now
    assert watch.run(studio.release, "hangs", id="r") == 2
    assert watch.now - began <= timedelta(seconds=10 + 31 + 2 + 60 + 2)  # moved, stalled, paused, and done again
    [told] = studio.of("step.stalled")
    assert "the learned limit is 30 s (usually moves within " in told.note
    assert studio.of("step.slow") == []


def test_enforced_what_has_become_slower_is_tried_with_more_patience_until_it_succeeds(watch: Watch) -> None:
    app = App("sqlite:////nowhere/at/all.db")
    slower: list[int] = []

    @app.step(learned="enforce", retry=Retry(3, backoff="1s"))
    async def load() -> int:
        await asyncio.sleep(20 * (10 if slower else 1))
        return attempt().number

    @app.workflow
    async def wf() -> int:
        return await load()

    for _ in range(ENOUGH):
        assert watch.run(wf) == 1
    watch.jump("70s")
    slower.append(1)
    assert watch.run(wf) == 3  # it got 60 s, 120 s, and then 240 s


@pytest.mark.parametrize("given", ["enforced", None, True])
def test_what_was_learned_is_observed_suggested_or_enforced(given: Any) -> None:
    app = App("sqlite:////nowhere/at/all.db")
    with pytest.raises(InvalidOptionError, match="learned of step 'encode' must be 'observe', 'suggest' or 'enforce'"):

        @app.step(learned=given)
        async def encode() -> None: ...


# --- suggested


def test_suggested_what_would_have_been_ended_is_counted_and_what_was_done_all_the_same(watch: Watch) -> None:
    studio = Studio(watch, learned={"timeout": "suggest", "stall": "suggest"})
    studio.learn()
    paused = watch.start(studio.release, "pauses")
    assert paused.result() == 1
    hung = watch.start(studio.release, "hangs", id="hung")
    watch.jump("2m")
    [found] = studio.do(studio.app.suggestions)
    _, stall = found.budgets
    assert (stall.mode, stall.beyond, stall.by_itself) == ("suggest", 2, 1), "one was a false alarm, so far"
    assert not CURES & {event.kind for event in studio.told}
    [left] = [event for event in hung.timeline() if event.kind == "leave_alone"]
    assert left.rejected == ("mark failed: learned is 'suggest'",)
    assert left.outcome == "it runs on"
    [well] = [event for event in paused.timeline() if event.kind == "leave_alone"]
    assert well.outcome == "done by itself"
    assert watch.run(studio.release, "quiet") == 1  # from which it learns that silence says nothing
    watch.jump("11s")
    [found] = studio.do(studio.app.suggestions)
    assert (
        found.note == "no stall is suggested any more: 3 would have been ended by it of late, 2 were done by themselves"
    )


def test_observed_nothing_is_counted_and_the_timeline_says_what_would_have_been(watch: Watch) -> None:
    studio = Studio(watch)
    studio.learn()
    run = watch.start(studio.release, "hangs")
    watch.jump("2m")
    [found] = studio.do(studio.app.suggestions)
    assert [(budget.beyond, budget.by_itself) for budget in found.budgets] == [(None, None), (None, None)]
    [left] = [event for event in run.timeline() if event.kind == "leave_alone"]
    assert left.rejected == ("mark failed: learned is 'observe'",)
    assert "Decided: leave alone, since beyond what was learned: usually moves within " in str(run.explain())


def test_each_rule_is_enforced_or_not_by_itself(watch: Watch) -> None:
    studio = Studio(watch, learned={"timeout": "enforce"}, retry=Retry(1, backoff="1s"))
    studio.learn()
    assert watch.run(studio.release, "hangs", id="r") == 2
    assert [event.step for event in studio.of("step.late")] == ["encode"]
    assert [event.step for event in studio.of("step.slow")] == ["encode"], "that it stood still was seen before"
    assert studio.of("step.stalled") == []


# --- expected end


def test_a_run_says_when_it_will_probably_have_ended(watch: Watch) -> None:
    studio = Studio(watch)
    first = studio.watch.start(studio.release)
    watch.jump("5s")
    assert first.status().expected_end is None
    watch.jump("2m")
    studio.learn(6)
    began = watch.now
    run = studio.watch.start(studio.release)
    watch.jump("5s")
    expected = run.status().expected_end
    assert timedelta(seconds=57) <= expected - began <= timedelta(seconds=63)
    run.pause("later")
    watch.jump("1s")
    assert run.status().expected_end is None
    run.resume()
    watch.jump("5m")
    assert run.status().expected_end is None  # it has ended


def test_a_run_that_outlasts_all_others_says_no_more(watch: Watch) -> None:
    studio = Studio(watch)
    studio.learn(6)
    run = studio.watch.start(studio.release, "hangs")
    watch.jump("10m")
    assert run.status().expected_end is None


# --- on every store


async def test_on_every_store_it_is_learned_read_and_observed(kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = App(kept)
    ear = Ear(app)
    monkeypatch.setattr("watchbill.model.suggestion.LEAST_TIMEOUT", 1)
    monkeypatch.setattr("watchbill.model.suggestion.LEAST_STALL", 1_000_000_000)
    go = asyncio.Event()

    @app.step(limit=Limit(at_once=100))  # so each has a row
    async def encode(waits: bool) -> None:
        if waits:
            await go.wait()

    @app.workflow
    async def release() -> None:
        await asyncio.gather(*(encode(False) for _ in range(ENOUGH)))

    @app.workflow
    async def hang() -> None:
        await encode(True)

    async with app.rooms():
        await ends(await app.start(release))
    [found] = await app.suggestions()
    assert (found.step, found.succeeded, len(found.budgets)) == ("encode", ENOUGH, 1)
    async with app.rooms():
        await app.set_policy("encode", {"learned": {"timeout": "suggest"}}, by="ada", reason="try it out")
        handle = await app.start(hang, id="r")
        [told] = await ear.hears("step.slow", "r")
        assert told.step == "encode"
        status = await becomes(handle, lambda status: status.health == "slow")
        assert status.steps[0].attempts[0].number == 1
        assert [run.id async for run in app.runs(health="slow")] == ["r"]
        assert "it is slow: usually " in str(await handle.explain())
        [found] = await app.suggestions()
        assert [(one.mode, one.beyond, one.by_itself) for one in found.budgets] == [("suggest", 1, 0)]
        go.set()
        await ends(handle)
    ear.close()
    assert ear.of("step.late") == []
    assert len(ear.of("step.slow")) == 1
    assert (await Report(kept).steps("r"))["encode"]["retries"] == 0, "nothing was wrong with it"
    [found] = await app.suggestions()
    assert [(one.mode, one.beyond, one.by_itself) for one in found.budgets] == [("suggest", 1, 1)]
    [left] = [event for event in await handle.timeline() if event.kind == "leave_alone"]
    assert (left.rejected, left.outcome) == (("mark failed: learned is 'suggest'",), "done by itself")
