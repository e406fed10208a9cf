"""The fixture `watch` and people: questions, decisions, webhooks and alerts, as a user's tests have them."""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.rooms.listener import Listener
from watchbill import (
    App,
    Escalate,
    InboxItem,
    InvalidOptionError,
    InvalidValueError,
    ItemNotFound,
    QuestionNotFound,
    RunFailed,
    WatchbillError,
    ask,
    receive,
    sleep,
    spread,
)
from watchbill.posting import signatures
from watchbill.testing.posted import Posted
from watchbill.testing.trial import NeverEndsError, UnansweredError
from watchbill.testing.watch import Watch

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOOK = "https://shop.example/hooks/refunds?token=secret"
ALERTS = "https://alerts.example/all, leads=slack://token-a/token-b"

app = App(alerts=ALERTS)
paid: list[str] = []


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    paid.clear()


@app.step
def pay_back(order: str, cents: int) -> str:
    paid.append(order)
    return f"{cents} cents for {order}"


@app.workflow(notify=HOOK)
async def refund(order: str, cents: int) -> str:
    try:
        approved = await ask(f"Refund {cents} cents for {order}?", bool, to="desk", within="8h", escalate_to="leads")
    except TimeoutError:
        return "nobody decided"
    return await pay_back(order, cents) if approved else "refused"


def posted(watch: Watch, kind: str = "webhook") -> list[Posted]:
    return [one for one in watch.posted if one.kind == kind]


# --- an approval, as a newcomer tests it


def test_an_approved_refund_is_paid_and_the_shop_hears_of_it(watch: Watch) -> None:
    watch.at(NINE)
    run = watch.start(refund, "order-1", 500, id="refund-1")
    [item] = watch.inbox()
    assert isinstance(item, InboxItem)
    assert (item.question, item.to, item.run) == ("Refund 500 cents for order-1?", "desk", "refund-1")
    assert item.due_at == NINE + timedelta(hours=8)
    watch.jump("1h")
    watch.answer(item, True)
    assert paid == ["order-1"]
    assert run.result() == "500 cents for order-1"
    [webhook] = posted(watch)
    assert webhook.url == HOOK
    assert webhook.at == NINE + timedelta(hours=1)
    assert webhook.body == {
        "id": "refund-1", "workflow": "refund", "state": "completed", "result": "500 cents for order-1", "error": None,
    }  # fmt: skip


def test_a_refused_refund_is_not_paid(watch: Watch) -> None:
    run = watch.start(refund, "order-1", 500)
    watch.answer(watch.inbox()[0].id, False, by="ada")
    assert run.result() == "refused"
    assert paid == []
    assert watch.inbox() == []
    assert [event.actor for event in run.timeline() if event.kind == "answered"] == ["ada"]


def test_the_desk_is_reminded_and_then_the_leads_are_asked(watch: Watch) -> None:
    watch.at(NINE)
    run = watch.start(refund, "order-1", 500)
    watch.jump("1s")
    assert [(one.group, one.body["event"]) for one in posted(watch, "alert")] == [("desk", "asked")]
    watch.jump("4h")
    [_, reminder] = posted(watch, "alert")
    assert (reminder.group, reminder.body["event"], reminder.url) == ("desk", "reminded", "https://alerts.example/all")
    assert NINE + timedelta(hours=4) <= reminder.at <= NINE + timedelta(hours=4, seconds=1)
    watch.jump("4h")
    [item] = watch.inbox()
    assert item.to == "leads"
    to_slack = [one for one in posted(watch, "alert") if one.url == "slack://token-a/token-b"]
    assert [one.body["title"] for one in to_slack] == ["Watchbill: somebody is asked"]
    assert "Refund 500 cents for order-1?" in to_slack[0].body["text"]
    watch.answer(item, True)
    assert run.result() == "500 cents for order-1"


def test_watch_run_lets_the_time_for_an_answer_pass(watch: Watch) -> None:
    watch.at(NINE)
    assert watch.run(refund, "order-1", 500) == "nobody decided"
    assert watch.now == NINE + timedelta(hours=16)
    assert [one.body["result"] for one in posted(watch)] == ["nobody decided"]


# --- answers


def test_answer_of_the_wrong_type_is_refused_and_the_question_stays(watch: Watch) -> None:
    run = watch.start(refund, "order-1", 500)
    [item] = watch.inbox()
    with pytest.raises(InvalidValueError, match="it must be true or false, got 'maybe'"):
        watch.answer(item, "maybe")
    assert [one.id for one in watch.inbox()] == [item.id]
    watch.answer(item, True)
    assert run.status().state == "completed"


def test_answer_to_a_run_that_is_paused_waits_for_it(watch: Watch) -> None:
    run = watch.start(refund, "order-1", 500)
    run.pause("lunch")
    watch.answer(watch.inbox()[0], True)
    assert run.status().state == "waiting"
    run.resume()
    assert run.result() == "500 cents for order-1"


def test_what_cannot_be_answered_is_named(watch: Watch) -> None:
    assert (watch.inbox(), watch.incidents(), watch.runs(), watch.posted) == ([], [], [], [])
    for act in (lambda: watch.answer("1f", True), lambda: watch.resolve("1f", "retry")):
        with pytest.raises(InvalidOptionError, match="no run was started in this test"):
            act()
    run = watch.start(refund, "order-1", 500)
    with pytest.raises(InvalidOptionError, match=r"watch.answer\(\) takes an item of watch.inbox\(\), or its id; got"):
        watch.answer(run, True)  # type: ignore[arg-type]
    with pytest.raises(QuestionNotFound):
        watch.answer("1f", True)
    with pytest.raises(ItemNotFound):
        watch.resolve("1f", "retry")
    [item] = watch.inbox()
    watch.answer(item, True)
    with pytest.raises(QuestionNotFound):
        watch.answer(item, True)


def test_questions_of_two_apps_are_answered_by_their_items(watch: Watch) -> None:
    other = App()

    @other.workflow
    async def also() -> int:
        return await ask("how many?", int)

    first, second = watch.start(refund, "order-1", 500), watch.start(also)
    items = {item.question: item for item in watch.inbox()}
    assert len({item.id for item in items.values()}) == 2
    watch.answer(items["how many?"], 7)
    watch.answer(items["Refund 500 cents for order-1?"], False)
    assert (first.result(), second.result()) == ("refused", 7)


async def test_async_tests_are_refused_as_everywhere(watch: Watch) -> None:
    acts: list[Callable[[], object]] = [
        watch.inbox, watch.incidents, watch.runs, lambda: watch.answer("1f", 1), lambda: watch.resolve("1f", "retry")
    ]  # fmt: skip
    for act in acts:
        with pytest.raises(WatchbillError, match="make the test a plain `def`"):
            act()


# --- waiting for an answer that does not come

ticking, patient = App(), App()


@ticking.workflow(every="1s")
async def ticks() -> None:
    """Run every second: twenty years of it would take the test very long."""


@ticking.workflow
async def asks() -> bool:
    return await ask("Really?", bool)


@ticking.workflow
async def asks_below() -> bool:
    return await asks()


@pytest.mark.parametrize("workflow", [asks, asks_below])
def test_watch_run_of_a_question_without_time_says_at_once_how_to_answer(watch: Watch, workflow: Any) -> None:
    watch.at(NINE)
    with pytest.raises(UnansweredError, match=r"run 'r' waits for the answer to question 'Really\?'") as found:
        watch.run(workflow, id="r")
    assert watch.now - NINE <= timedelta(seconds=1)
    for words in ("watch.start(...)", "watch.inbox()", "watch.answer(item, value)", "run.result()"):
        assert words in str(found.value)
    assert ("of run" in str(found.value)) == (workflow is asks_below)
    [run] = watch.runs(workflow=workflow.name)
    with pytest.raises(UnansweredError, match="'r' waits for the answer"):
        run.result()
    watch.answer(found.value.item, True)
    assert run.result() is True


def test_result_with_a_timeout_waits_for_so_long(watch: Watch) -> None:
    watch.at(NINE)
    run = watch.start(asks)
    with pytest.raises(TimeoutError):
        run.result(timeout="1m")
    assert watch.now == NINE + timedelta(minutes=1)


@patient.workflow
async def asks_a_friend() -> bool:
    return await ask("Really?", bool)


@patient.workflow
async def naps() -> None:
    await sleep("30d")


@patient.workflow
async def asks_or(what: str) -> str:
    others: dict[str, Callable[[], Any]] = {
        "sleeps": lambda: sleep("30d"),
        "runs": naps,
        "hears": lambda: receive("told", str),
    }
    other = asyncio.ensure_future(others[what]())
    asked = asyncio.ensure_future(asks_a_friend())
    await asyncio.wait([asked, other], return_when=asyncio.FIRST_COMPLETED)
    return "answered" if asked.done() else what


@pytest.mark.parametrize("what", ["sleeps", "runs"])
def test_what_time_brings_is_waited_for(watch: Watch, what: str) -> None:
    watch.at(NINE)
    assert watch.run(asks_or, what) == what
    assert watch.now == NINE + timedelta(days=30)


def test_run_that_also_waits_for_a_message_says_in_the_end_what_it_waits_for(watch: Watch) -> None:
    with pytest.raises(UnansweredError, match=r"the answer to question 'Really\?'"):
        watch.run(asks_or, "hears")


@patient.step(retry=0, then=[Escalate("desk")])
def breaks() -> int:
    raise ValueError("no paper")


@patient.workflow
async def prints() -> int:
    return await breaks()


def test_run_that_waits_for_a_decision_says_how_to_decide(watch: Watch) -> None:
    with pytest.raises(NeverEndsError, match=r"waits for a decision, because step 'breaks' has failed.*watch.resolve"):
        watch.run(prints)


# --- decisions


def test_call_that_waits_for_a_person_is_decided_by_its_incident_or_its_item(watch: Watch) -> None:
    runs = [watch.start(prints, id=f"print-{n}") for n in (1, 2)]
    watch.jump("1s")
    [incident] = watch.incidents()
    assert (incident.group, incident.members) == ("desk", 2)
    one, _ = watch.inbox()
    with pytest.raises(InvalidOptionError, match=r"is no question, step 'breaks' has failed.*watch.resolve\(item,"):
        watch.answer(one, 5)
    watch.resolve(one, "provide", 5)
    assert runs[0].result() == 5
    [other] = watch.inbox()
    with pytest.raises(InvalidValueError, match=r"no paper\" still waits for a person: .*Expected int, got str"):
        watch.resolve(other, "provide", "five")
    watch.resolve(incident, "provide", 6, reason="printed elsewhere")
    watch.jump("2s")
    assert runs[1].result() == 6
    assert watch.inbox() == []
    assert watch.incidents() == []


@patient.step(retry=0)
def charges() -> str:
    paid.append("try")
    if len(paid) == 1:
        raise ConnectionError("away")
    return "charged"


@patient.workflow
async def order() -> str:
    return await charges()


def test_failed_runs_are_retried_by_their_incident(watch: Watch) -> None:
    with pytest.raises(RunFailed, match="away"):
        watch.run(order, id="order-1")
    watch.jump("2s")
    [incident] = watch.incidents()
    watch.resolve(incident, "retry", by="ada")
    watch.jump("10s")
    assert [(run.id, run.status().state) for run in watch.runs(workflow="order")] == [
        ("order-1~2", "completed"), ("order-1", "failed"),
    ]  # fmt: skip
    assert [run.id for run in watch.runs(status="failed")] == ["order-1"]
    assert [(one.state, one.cause) for one in watch.incidents(resolved=True)] == [("resolved", incident.cause)]


# --- nothing leaves a test


def test_no_webhook_and_no_alert_leaves_the_test(
    watch: Watch, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[object] = []
    listener.saw = heard.append
    monkeypatch.setenv("WATCHBILL_ALERTS", listener.url)
    monkeypatch.setenv("WATCHBILL_PING", listener.url)
    monkeypatch.setitem(sys.modules, "apprise", None)  # it need not be installed
    by_variable, by_argument = App(), App(alerts=f"{listener.url}, json://127.0.0.1:{listener.server.server_port}/")
    for mine in (by_variable, by_argument):

        @mine.workflow(name="asking", notify=listener.url)
        async def asking() -> bool:
            return await ask("Really?", bool)

        run = watch.start(asking)
        watch.jump("1m")
        watch.answer(watch.inbox()[0], True)
        assert run.result() is True
        watch.jump("1m")
    kinds = Counter((one.kind.value, one.url.partition(":")[0]) for one in watch.posted)
    assert kinds == {("alert", "http"): 4, ("alert", "json"): 2, ("webhook", "http"): 2}
    assert heard == listener.heard == []


def test_no_webhook_leaves_a_world_of_crashes(watch: Watch, listener: Listener) -> None:
    heard: list[object] = []
    listener.saw = heard.append
    mine = App()

    @mine.workflow(notify=listener.url)
    async def counts() -> list[str]:
        return await spread(_named, ["a", "b"])

    @mine.step(name="named")
    async def _named(name: str) -> str:
        return name

    assert watch.crash_everywhere(counts) > 10
    assert heard == watch.posted == []


def test_headers_are_those_of_a_real_post_in_virtual_time(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHBILL_SECRET", "a secret of this test")
    watch.at(NINE)
    watch.start(refund, "order-1", 500, id="r")
    watch.answer(watch.inbox()[0], False)
    [webhook] = posted(watch)
    assert webhook.headers["webhook-timestamp"] == str(int(NINE.timestamp()))
    assert webhook.headers["webhook-id"].startswith("run_")
    sent = b'{"id":"r","workflow":"refund","state":"completed","result":"refused","error":null}'
    made = signatures([b"a secret of this test"], webhook.headers["webhook-id"], int(NINE.timestamp()), sent)
    assert webhook.headers["webhook-signature"] == made


# --- deliveries that fail


def test_refused_webhook_is_delivered_again(watch: Watch) -> None:
    watch.refuse_posts(times=2)
    run = watch.start(refund, "order-1", 500)
    watch.answer(watch.inbox()[0], False)
    assert [one.status for one in posted(watch)] == [503]
    watch.jump("1m")
    first, second, third = posted(watch)
    assert [first.status, second.status, third.status] == [503, 503, 200]
    assert first.at < second.at < third.at
    assert len({one.headers["webhook-id"] for one in (first, second, third)}) == 1, "so the receiver can ignore one"
    assert first.body == second.body == third.body
    assert run.result() == "refused"


def test_webhook_that_the_receiver_does_not_want_is_given_up(watch: Watch) -> None:
    watch.refuse_posts(status=410)
    watch.start(refund, "order-1", 500, id="r")
    watch.answer(watch.inbox()[0], False)
    watch.jump("1d")
    assert [one.status for one in posted(watch)] == [410]
    [delivery] = watch.runs(workflow="watchbill:notify")
    with pytest.raises(RunFailed, match=r"https://shop\.example/\.\.\. answered 410"):
        delivery.result()


def test_refused_alert_is_sent_again(watch: Watch) -> None:
    watch.start(refund, "order-1", 500)
    watch.refuse_posts(status=500)
    watch.jump("10s")
    assert [(one.body["event"], one.status) for one in posted(watch, "alert")] == [("asked", 500), ("asked", 200)]


@pytest.mark.parametrize("given", [{"times": 0}, {"times": True}, {"status": 200}, {"status": "503"}])
def test_odd_refusals_are_refused(watch: Watch, given: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"refuse_posts\("):
        watch.refuse_posts(**given)
