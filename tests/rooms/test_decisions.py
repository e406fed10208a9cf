"""What people decide about calls that wait for them: each action, by whom and why, once, and what does not fit."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.keys import FIRST
from tests.rooms.scene import LONG, LOOK_EVERY, Ear, ends
from watchbill import (
    AlreadyDecided,
    Ambiguous,
    App,
    ClaimedByOther,
    Escalate,
    Handle,
    InboxItem,
    InvalidOptionError,
    InvalidValueError,
    ItemNotFound,
    RunCancelled,
    RunNotFound,
    RunUndone,
    ask,
)
from watchbill.errors import StoreUnreachableError
from watchbill.events import INCIDENT_RESOLVED, STEP_FAILED
from watchbill.model.incident import Incident
from watchbill.model.states import AttemptState
from watchbill.testing.conformance.scene import a_verdict


@dataclass
class Hidden:
    """A value that shows itself to nobody."""

    value: str

    def __repr__(self) -> str:
        return "(hidden)"


class Shop:
    """A program whose step fails until it is mended; what became of it is remembered."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.ear = Ear(app)
        self.mended = False
        self.calls: list[tuple[str, int]] = []
        self.undone: list[tuple[str | None, str]] = []

        @app.step(retry=0)
        async def reserve(item: str) -> str:
            return f"{item} reserved"

        @reserve.undo
        async def release(result: str | None, item: str) -> None:
            self.undone.append((result, item))

        @app.step(retry=0)
        async def charge(item: str, cents: int = 5) -> str:
            self.calls.append((item, cents))
            if not self.mended:
                raise ConnectionError(f"no line to the bank for {item}")
            return f"{item} paid {cents}"

        @charge.undo
        async def refund(result: str | None, item: str, cents: int) -> None:
            self.undone.append((result, f"{item} {cents}"))

        @app.step(retry=0)
        async def note(item: str) -> str | None:
            raise ValueError(f"no paper for {item}")

        @app.step(retry=0)
        async def fails_later(item: str) -> None:
            raise RuntimeError("no")

        @app.workflow
        async def order(item: str) -> str:
            await reserve(item)
            return await charge(item)

        @app.workflow
        async def noted(item: str) -> str | None:
            return await note(item)

        @app.workflow
        async def sour(item: str) -> None:
            await charge(item)
            await fails_later(item)

        self.order, self.noted, self.sour = order, noted, sour

    async def stuck(self, workflow: Any, *ids: str) -> list[Handle[Any]]:
        """Start runs, and let their calls fail so that they wait for a person."""
        async with self.app.rooms(supervisor=False):
            runs = [await self.app.start(workflow, id, id=id) for id in ids]
            for id in ids:
                await self.ear.hears(STEP_FAILED, id)
            await self.escalate()
        return runs

    async def escalate(self) -> None:
        store = self.app._hall._store  # type: ignore[attr-defined]
        due = (await store.supervisor.watch(1_000)).due
        verdicts = [a_verdict(row, AttemptState.PARKED, why="escalate", result=row.result) for row in due]
        assert all(await store.supervisor.judge(verdicts))

    async def item(self, fits: Callable[[InboxItem], object] = lambda item: item.incident) -> InboxItem:
        async with asyncio.timeout(LONG):
            while True:
                for item in await self.app.inbox():
                    if fits(item):
                        return item
                await asyncio.sleep(0)

    async def incident(self) -> Incident:
        async with asyncio.timeout(LONG):
            while not (found := await self.app.incidents()):
                await asyncio.sleep(LOOK_EVERY)
        return found[0]

    async def decisions(self, run: Handle[Any]) -> list[tuple[str, str, str]]:
        known = ("retry", "resume", "provide", "skip", "undo", "abort", "refused")
        return [(event.kind, event.step, event.note) for event in await run.timeline() if event.kind in known]


@pytest.fixture
async def shop(app: App) -> Any:
    shop = Shop(app)
    yield shop
    shop.ear.close()


# --- the incident


async def test_runs_that_fail_alike_are_one_incident_and_items_of_the_inbox(shop: Shop) -> None:
    runs = await shop.stuck(shop.order, "o-1", "o-2", "o-3")
    async with shop.app.rooms():
        incident = await shop.incident()
        assert (incident.state, incident.members, incident.group) == ("open", 3, "")
        assert incident.said.endswith("ConnectionError: no line to the bank for o-1")
        assert set(incident.examples) <= {"o-1", "o-2", "o-3"}
        assert incident.actions == ("resume", "retry", "provide", "skip", "undo", "abort")
        item = await shop.item()
        assert (item.kind, item.call, item.incident, item.form) == ("escalate", "charge", incident.id, {})
        assert "no line to the bank" in item.question
        assert len(await shop.app.inbox()) == 3
        shop.mended = True
        await shop.app.resolve(incident.id, "resume", by="ada", reason="the line is back")
        [logged] = await shop.app.logbook()
        assert (logged.by, logged.kind, logged.name, logged.act) == ("ada", "incident", incident.id, "resume")
        assert logged.reason == "", "it is kept with the runs, sealed where they are"
        assert [await ends(run) for run in runs] == ["o-1 paid 5", "o-2 paid 5", "o-3 paid 5"]
        await shop.ear.hears(INCIDENT_RESOLVED)
        assert await shop.app.incidents() == []
        [resolved] = await shop.app.incidents(resolved=True)
        assert (resolved.state, resolved.members, resolved.actions) == ("resolved", 3, ())
        assert await shop.decisions(runs[0]) == [("resume", "charge", "by ada: the line is back")]
        with pytest.raises(ItemNotFound, match="nothing waits"):
            await shop.app.resolve(incident.id, "resume", reason="again")


# --- one call


async def test_a_call_is_tried_again_with_fresh_budgets(shop: Shop) -> None:
    [run] = await shop.stuck(shop.order, "o-1")
    shop.mended = True
    async with shop.app.rooms():
        item = await shop.item()
        await shop.app.resolve(item.id, "retry", by="ada", reason="mended")
        assert await ends(run) == "o-1 paid 5"
        assert await shop.decisions(run) == [("retry", "charge", "by ada: mended")]
        with pytest.raises(ItemNotFound):
            await shop.app.resolve(item.id, "retry", reason="again")


async def test_a_call_is_named_by_its_run_and_key_too(shop: Shop) -> None:
    [run] = await shop.stuck(shop.order, "o-1")
    shop.mended = True
    async with shop.app.rooms():
        with pytest.raises(InvalidOptionError, match="did you mean 'charge'"):
            await shop.app.resolve("o-1", "retry", call="chrage", reason="mended")
        with pytest.raises(RunNotFound):
            await shop.app.resolve("o-9", "retry", call="charge", reason="mended")
        await shop.app.resolve("o-1", "retry", call="charge", reason="mended")
        assert await ends(run) == "o-1 paid 5"


async def test_it_is_tried_with_other_arguments_and_undone_with_those(shop: Shop) -> None:
    [run] = await shop.stuck(shop.sour, "o-1")
    shop.mended = True
    async with shop.app.rooms():
        item = await shop.item()
        await shop.app.resolve(item.id, "retry", args={"cents": 7}, by="ada", reason="the price was wrong")
        with pytest.raises(RunUndone):
            await ends(run)
    assert shop.calls == [("o-1", 5), ("o-1", 7)]
    assert shop.undone == [("o-1 paid 7", "o-1 7")]
    kinds = [event.kind for event in await run.timeline()]
    assert kinds.index("edited") < kinds.index("run_undone")
    assert ("retry", "charge", "by ada: the price was wrong (with cents=7 instead of 5)") in await shop.decisions(run)


async def test_what_was_edited_is_in_the_history_but_no_secret_and_not_all_of_a_long_value(app: App) -> None:
    @app.step(retry=0, then=[Escalate("bank-team")])
    async def pay(order: str, lines: list[int], token: Hidden) -> str:
        if order == "o-1":
            raise ConnectionError("no line")
        return order

    @app.workflow
    async def sale() -> str:
        return await pay("o-1", [1], Hidden("s3cret"))

    async with app.rooms():
        run = await app.start(sale)
        async with asyncio.timeout(LONG):
            while not (items := [item for item in await app.inbox() if item.incident]):
                await asyncio.sleep(LOOK_EVERY)
        edited = {"order": "o-2", "lines": list(range(100)), "token": {"value": "t0ken"}}
        await app.resolve(items[0].id, "retry", args=edited, by="ada", reason="typo")
        assert await ends(run) == "o-2"
        [note] = [event.note for event in await run.timeline() if event.kind == "retry"]
    assert note.startswith("by ada: typo (with order='o-2' instead of 'o-1', lines=[0, 1, 2,")
    assert "... instead of [1], token=(hidden) instead of (hidden))" in note
    assert "s3cret" not in note
    assert "t0ken" not in note


async def test_other_arguments_survive_a_restart(shop: Shop) -> None:
    [run] = await shop.stuck(shop.order, "o-1")
    [item] = await shop.app.inbox()
    await shop.app.resolve(item.id, "retry", args={"cents": 7}, reason="the price was wrong")
    async with shop.app.rooms(agent=False, supervisor=False):
        async with asyncio.timeout(LONG):
            while "edited" not in [event.kind for event in await run.timeline()]:
                await asyncio.sleep(LOOK_EVERY)
    shop.mended = True
    async with shop.app.rooms():
        assert await ends(run) == "o-1 paid 7"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"cents": "many"}, "must be int"),
        ({"cent": 7}, "did you mean 'cents'"),
        ({"item": None}, "must be str"),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_and_it_waits_on(
    shop: Shop, args: dict[str, Any], said: str
) -> None:
    [run] = await shop.stuck(shop.order, "o-1")
    async with shop.app.rooms():
        item = await shop.item()
        await shop.app.resolve(item.id, "retry", args=args, by="ada", reason="try this")
        refused = await shop.item(lambda item: item.refused)
        assert refused.id == item.id
        assert "retry by ada was refused: the arguments do not fit 'charge'" in str(refused.refused)
        assert said in str(refused.refused)
        await shop.app.resolve(item.id, "provide", "paid by hand", reason="now it fits")
        assert await ends(run) == "paid by hand"
    assert len(shop.calls) == 1


async def test_a_result_is_provided(shop: Shop) -> None:
    [run] = await shop.stuck(shop.order, "o-1")
    async with shop.app.rooms():
        item = await shop.item()
        await shop.app.resolve(item.id, "provide", "paid by hand", by="ada", reason="in cash")
        assert await ends(run) == "paid by hand"
        assert await shop.decisions(run) == [("provide", "charge", "by ada: in cash")]
    assert len(shop.calls) == 1


async def test_a_result_that_does_not_fit_is_refused(shop: Shop) -> None:
    [run] = await shop.stuck(shop.order, "o-1")
    async with shop.app.rooms():
        item = await shop.item()
        await shop.app.resolve(item.id, "provide", 5, by="ada", reason="in cash")
        refused = await shop.item(lambda item: item.refused)
        assert "provide by ada was refused: the result does not fit 'charge'" in str(refused.refused)
        await run.cancel("enough")
        with pytest.raises(RunCancelled):
            await ends(run)


async def test_a_call_is_skipped_where_its_type_allows_none(shop: Shop) -> None:
    [run] = await shop.stuck(shop.noted, "n-1")
    async with shop.app.rooms():
        item = await shop.item()
        await shop.app.resolve(item.id, "skip", by="ada", reason="nobody reads it")
        assert await ends(run) is None
        assert await shop.decisions(run) == [("skip", "note", "by ada: nobody reads it")]


async def test_a_call_that_must_return_something_is_not_skipped(shop: Shop) -> None:
    await shop.stuck(shop.order, "o-1")
    async with shop.app.rooms():
        item = await shop.item()
        await shop.app.resolve(item.id, "skip", by="ada", reason="never mind")
        refused = await shop.item(lambda item: item.refused)
        assert "skip by ada was refused: None, as the result of a call that is skipped," in str(refused.refused)


async def test_a_run_is_stopped_as_a_failure_and_undone(shop: Shop) -> None:
    [run] = await shop.stuck(shop.order, "o-1")
    async with shop.app.rooms():
        item = await shop.item()
        await shop.app.resolve(item.id, "undo", by="ada", reason="the customer is gone")
        with pytest.raises(RunUndone, match="the customer is gone") as undone:
            await ends(run)
        assert (undone.value.error.type, undone.value.cause) == ("Stopped", "cancelled")
        assert await shop.decisions(run) == [("undo", "charge", "by ada: the customer is gone")]
    assert shop.undone == [("o-1 reserved", "o-1")], "who raised has cleaned up after itself"


async def test_a_run_is_aborted(shop: Shop) -> None:
    [run] = await shop.stuck(shop.order, "o-1")
    async with shop.app.rooms():
        item = await shop.item()
        await shop.app.resolve(item.id, "abort", by="ada", reason="out of business")
        with pytest.raises(RunCancelled, match="out of business"):
            await ends(run)
        await shop.ear.hears(INCIDENT_RESOLVED)
    assert shop.undone == [("o-1 reserved", "o-1")], "who raised has cleaned up after itself"


# --- as authors write it


async def test_an_escalation_is_for_its_group_and_what_is_in_doubt_for_everybody(app: App) -> None:
    calls: list[str] = []
    mended: list[str] = []

    @app.step(retry=0, then=[Escalate("bank-team")])
    async def pay(order: str) -> str:
        calls.append(order)
        if not mended:
            raise ConnectionError(f"no line for {order}")
        return f"{order} paid"

    @app.step(retry=2)
    async def ship(order: str) -> str:
        calls.append(order)
        raise Ambiguous("no answer")

    @app.workflow
    async def paid(order: str) -> str:
        return await pay(order)

    @app.workflow
    async def shipped(order: str) -> str:
        return await ship(order)

    async def items(count: int) -> dict[str, InboxItem]:
        async with asyncio.timeout(LONG):
            while len(found := [item for item in await app.inbox() if item.incident]) < count:
                await asyncio.sleep(LOOK_EVERY)
        return {item.run: item for item in found}

    async with app.rooms():
        runs = [await app.start(paid, "p", id="p"), await app.start(shipped, "s", id="s")]
        found = await items(2)
        assert {id: (item.kind, item.to) for id, item in found.items()} == {
            "p": ("escalate", "bank-team"),
            "s": ("doubt", ""),
        }
        assert {one.group for one in await app.incidents()} == {"bank-team", ""}
        assert (await runs[0].status()).health == "waiting_for_person"
        mended.append("bank")
        await app.resolve(found["p"].id, "retry", by="ada", reason="the line is back")
        await app.resolve(found["s"].id, "provide", "it is there", by="ada", reason="the customer says so")
        assert [await ends(run) for run in runs] == ["p paid", "it is there"]
    assert sorted(calls) == ["p", "p", "s"], "what is in doubt is not tried blindly"


async def test_what_is_decided_under_keys_is_sealed_and_shows_no_value(url: str) -> None:
    app = App(url, keys=FIRST)
    shop = Shop(app)
    runs = await shop.stuck(shop.order, "o-1", "o-2")
    async with app.rooms():
        incident, item = await shop.incident(), await shop.item()
        assert incident.said.endswith("no line to the bank for o-1")
        await app.resolve(item.id, "provide", {"hunter": 22}, by="ada", reason="a try")
        refused = await shop.item(lambda item: item.refused)
        assert str(refused.refused).endswith("the result does not fit 'charge'")
        await app.resolve(item.id, "retry", args={"cents": "hunter22"}, by="ada", reason="a try")
        await shop.item(lambda item: "arguments" in str(item.refused))
        assert "hunter" not in str([await run.timeline() for run in runs])
        await app.resolve(incident.id, "provide", "in cash", by="ada", reason="all of them")
        assert [await ends(run) for run in runs] == ["in cash", "in cash"]
    shop.ear.close()


@pytest.mark.parametrize("keys", [None, FIRST])
async def test_while_an_order_for_all_is_told_at_a_pace_everybody_sees_what_it_is(url: str, keys: Any) -> None:
    app = App(url, keys=keys)
    shop = Shop(app)
    runs = await shop.stuck(shop.order, "o-1", "o-2", "o-3")
    async with app.rooms():
        incident = await shop.incident()
        await shop.item()
    async with app.rooms(supervisor=False):  # so nobody is told
        await app.resolve(incident.id, "resume", by="ada", reason="the line is back", per_second=10)
        async with asyncio.timeout(LONG):
            while "No scheduler" in (said := str(await runs[2].explain())):
                await asyncio.sleep(LOOK_EVERY)
        assert f"for all of incident {incident.id}: resume (the line is back)." in said
        assert "The supervisor tells it to 10 in each second" in said
        assert "Next: the supervisor." in said
        assert "To decide" not in said
        [found] = await app.incidents()
        assert (found.ordered_by, found.ordered, found.reason) == ("ada", "resume", "the line is back")
        assert (found.per_second, found.untold, found.ordered_at is not None) == (10, 3, True)
        assert [item.answered_by for item in await app.inbox()] == ["ada"] * 3
    shop.mended = True
    async with app.rooms():
        assert [await ends(run) for run in runs] == ["o-1 paid 5", "o-2 paid 5", "o-3 paid 5"]
    shop.ear.close()


# --- once


async def test_the_first_decision_counts_and_the_second_hears_whose_it_was(shop: Shop) -> None:
    [run, _] = await shop.stuck(shop.order, "o-1", "o-2")
    async with shop.app.rooms(scheduler=False):
        incident, item = await shop.incident(), await shop.item()
        # Nobody takes it in now.
        await shop.app.resolve(item.id, "provide", "by ada", by="ada", reason="first")
        with pytest.raises(AlreadyDecided, match="ada has decided"):
            await shop.app.resolve(item.id, "abort", by="bob", reason="second")
    await shop.app.resolve(incident.id, "retry", by="ada", reason="all of them")
    with pytest.raises(AlreadyDecided, match="ada has decided") as refused:
        await shop.app.resolve(incident.id, "abort", by="bob", reason="second")
    assert refused.value.by == "ada"
    shop.mended = True
    async with shop.app.rooms():
        decided = "o-1" if item.run == "o-1" else "o-2"
        assert await ends(shop.app.handle(decided)) == "by ada"
        assert await ends(shop.app.handle("o-2" if decided == "o-1" else "o-1")) in ("o-1 paid 5", "o-2 paid 5")
    assert run.id == "o-1"


async def test_who_came_too_late_is_told_so(shop: Shop) -> None:
    [run] = await shop.stuck(shop.order, "o-1")
    item = (await shop.app.inbox())[0]
    shop.mended = True
    await run.retry()
    await shop.app.resolve(item.id, "provide", "by hand", by="bob", reason="too late")
    async with shop.app.rooms():
        assert await ends(run) == "o-1 paid 5"
        assert [note for kind, _, note in await shop.decisions(run) if kind == "refused"] == [
            "provide by bob was refused: it does not wait for a person any more"
        ]


async def test_what_one_holds_no_other_decides(shop: Shop) -> None:
    [run] = await shop.stuck(shop.order, "o-1")
    async with shop.app.rooms():
        item = await shop.item()
        await shop.app.claim(item.id, by="ada")
        with pytest.raises(ClaimedByOther, match="ada holds"):
            await shop.app.resolve(item.id, "provide", "x", by="bob", reason="mine")
        await shop.app.resolve(item.id, "provide", "x", by="bob", reason="mine", force=True)
        assert await ends(run) == "x"


async def test_whoever_names_a_run_is_told_to_name_its_call(shop: Shop) -> None:
    [run] = await shop.stuck(shop.order, "o-1")
    async with shop.app.rooms():
        item = await shop.item()
        with pytest.raises(InvalidOptionError, match=f"'o-1' is a run: .* --call {item.call}$"):
            await shop.app.resolve("o-1", "retry", reason="x")
        await shop.app.resolve("o-1", "provide", "x", call=item.call, reason="x")
        assert await ends(run) == "x"
        with pytest.raises(InvalidOptionError, match="'o-1' is a run, and no call of it waits"):
            await shop.app.resolve("o-1", "retry", reason="x")


@pytest.mark.parametrize("again", ["at once", "when all is done"])
async def test_an_order_whose_answer_is_lost_is_carried_out_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    runs = await shop.stuck(shop.order, "o-1", "o-2")
    shop.mended = True
    async with shop.app.rooms():
        incident = await shop.incident()
        doors = type(shop.app._hall._store.client)  # type: ignore[attr-defined]
        order = doors.order_incident
        lost: list[Any] = []

        async def cut_off(*args: Any, **options: Any) -> Any:
            became = await order(*args, **options)
            if not lost:
                lost.append(became)
                if again == "when all is done":
                    await shop.ear.hears(INCIDENT_RESOLVED)
                raise StoreUnreachableError(shop.app.url, "cut off")
            return became

        monkeypatch.setattr(doors, "order_incident", cut_off)
        await shop.app.resolve(incident.id, "resume", by="ada", reason="the line is back")
        [logged] = await shop.app.logbook()
        assert (logged.by, logged.kind, logged.name, logged.act) == ("ada", "incident", incident.id, "resume")
        assert logged.reason == "", "it is kept with the runs, sealed where they are"
        assert lost
        assert [await ends(run) for run in runs] == ["o-1 paid 5", "o-2 paid 5"]
        await shop.ear.hears(INCIDENT_RESOLVED)
        with pytest.raises(ItemNotFound):
            await shop.app.resolve(incident.id, "resume", by="ada", reason="the line is back")
        [logged] = await shop.app.logbook()
        assert (logged.by, logged.kind, logged.name, logged.act) == ("ada", "incident", incident.id, "resume")
        assert logged.reason == "", "it is kept with the runs, sealed where they are"
    assert [await shop.decisions(run) for run in runs] == [[("resume", "charge", "by ada: the line is back")]] * 2


async def test_whose_answer_about_a_call_is_lost_is_not_told_that_there_is_no_such_call(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    [run] = await shop.stuck(shop.order, "o-1")
    async with shop.app.rooms():
        item = await shop.item()
        doors = type(shop.app._hall._store.client)  # type: ignore[attr-defined]
        resolve = doors.resolve
        heard: list[Any] = []

        async def cut_off(*args: Any, **options: Any) -> Any:
            heard.append(await resolve(*args, **options))
            if len(heard) > 1:
                return heard[-1]
            await ends(run)
            raise StoreUnreachableError("cut off")

        monkeypatch.setattr(doors, "resolve", cut_off)
        with pytest.raises(StoreUnreachableError, match="this may have been heard"):
            await shop.app.resolve(item.id, "provide", "in cash", by="ada", reason="paid")
        assert await ends(run) == "in cash"
        with pytest.raises(ItemNotFound):
            await shop.app.resolve(item.id, "provide", "in cash", by="ada", reason="paid")


# --- what cannot be


@pytest.mark.parametrize(
    ("id", "action", "options", "error", "said"),
    [
        ("1f", "explode", {}, InvalidOptionError, "an action is one of"),
        ("1f", "retry", {"reason": ""}, InvalidOptionError, "reason is text"),
        ("1f", "retry", {"by": ""}, InvalidOptionError, "by is a name"),
        ("1f", "retry", {"args": [1]}, InvalidValueError, "by name"),
        ("1f", "skip", {"args": {"a": 1}}, InvalidOptionError, "for retry"),
        ("1f", "skip", {"value": 5}, InvalidOptionError, "a value is for provide"),
        ("1f", "retry", {"per_second": 0}, InvalidOptionError, "per_second"),
        ("1f", "retry", {}, ItemNotFound, "nothing waits"),
        ("xyz", "retry", {}, ItemNotFound, "no incident and no call has that id.*incidents list"),
        ("", "retry", {}, ItemNotFound, "inbox list"),
        (f"{2**63:x}", "retry", {}, ItemNotFound, "nothing waits"),
        ("f" * 16, "retry", {}, ItemNotFound, "nothing waits"),
        ("a\0b", "retry", {}, ItemNotFound, "nothing waits"),
        ("a\0b", "retry", {"call": "charge"}, RunNotFound, "there is no run"),
        ("1f", "retry", {"call": 5}, InvalidOptionError, "call is the key of a call"),
        ("1f", "retry", {"reason": "half \ud800"}, InvalidOptionError, "reason is text"),
        ("1f", "retry", {"reason": "\0"}, InvalidOptionError, "reason is text"),
        ("1f", "retry", {"args": {"a": object()}}, InvalidValueError, "the arguments.*of type object"),
        ("1f", "retry", {"args": {"a": math.nan}}, InvalidValueError, "the arguments.*is nan"),
        ("1f", "retry", {"args": {"a": "\ud800"}}, InvalidValueError, "the arguments.*lone surrogate"),
        ("1f", "retry", {"args": {"\ud800": 1}}, InvalidValueError, "the arguments"),
        ("1f", "provide", {"value": math.nan}, InvalidValueError, "the result.*is nan"),
    ],
)
async def test_what_cannot_be_decided_says_why(
    app: App, id: str, action: str, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        await app.resolve(id, action, **{"reason": "why", **options})


async def test_a_question_is_answered_and_a_call_is_decided_about(shop: Shop) -> None:
    @shop.app.workflow
    async def asks(_: str) -> bool:
        return bool(await ask("ship it?"))

    await shop.stuck(shop.order, "o-1")
    async with shop.app.rooms():
        call = await shop.item()
        with pytest.raises(InvalidOptionError, match=r"watchbill incidents retry [0-9a-f]+ --reason WHY"):
            await shop.app.answer(call.id, True)
        await shop.app.start(asks, "x")
        question = await shop.item(lambda item: item.kind == "question")
        with pytest.raises(InvalidOptionError, match="is a question"):
            await shop.app.resolve(question.id, "retry", reason="x")
