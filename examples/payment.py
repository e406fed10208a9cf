"""Payments over a bank that fails: `python examples/payment.py`.

Each order is authorized, captured, booked and gets its receipt. Authorizing, booking and the receipt pass on the key of
their attempt, and may be repeated. Money must not be captured twice, so capturing is never repeated blindly: when no
answer came the bank is asked by the key of the attempt; if it does not know either, people are asked, for four hours,
and then a manager. Large amounts need two different people. While the bank is down, nobody tries in vain.

An hour takes a second on this stage: `EXAMPLE_SPEED=1` gives people the four hours that they have in real life.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
from stage import PATIENCE, Cure, cost, perform, should, summary, tell, until

from watchbill import (
    AlreadyAnswered,
    Ambiguous,
    App,
    Busy,
    Done,
    Escalate,
    NotDone,
    QuestionNotFound,
    Retry,
    Unknown,
    ask,
    attempt,
    publish,
)

BANK = Path(os.environ.get("WATCHBILL_STAGE", ".")) / "bank"
FOUR_HOURS = timedelta(hours=4) / float(os.environ.get("EXAMPLE_SPEED", "1"))
LIMIT = 100_000  # cents; above it two must approve
AMOUNT = 12_000
Decision = Literal["captured", "not captured", "refund"]
app = App()


class Approval(msgspec.Struct, frozen=True):
    """What whoever approves says."""

    name: str
    approved: bool


# --- the bank, and the ledger: folders; each file is an amount, and names the key under which it was moved


def move(book: str, order: str, cents: int) -> None:
    """Move money, every time that it is told to: what may be repeated asks first whether its key is there."""
    entries = BANK / book
    entries.mkdir(parents=True, exist_ok=True)
    name = f"{order}.{attempt().key.replace('/', '_')}.{attempt().number}"
    (entries / name).write_text(json.dumps({"key": attempt().key, "cents": cents}))


def entries(book: str, order: str = "*") -> Iterator[dict[str, Any]]:
    for path in sorted((BANK / book).glob(f"{order}.*")):
        yield json.loads(path.read_text())


def has(book: str, order: str) -> bool:
    return any(entry["key"] == attempt().key for entry in entries(book, order))


def total(book: str, order: str = "*") -> int:
    return sum(entry["cents"] for entry in entries(book, order))


# --- the steps


@app.step(uses="cards", retry=Retry(3, backoff="50ms"))
def authorize(order: str, cents: int) -> str:
    if not has("authorized", order):
        move("authorized", order, cents)
    if order == "o-1" and attempt().number == 1:
        raise ConnectionResetError("the answer was lost on the way")
    return f"authorization of {order}"


def ask_bank(order: str, cents: int, authorization: str) -> Done | NotDone | Unknown:
    """Ask the bank, by the key of the attempt in doubt, whether it has the money."""
    if order == "o-7":
        return Unknown("the bank's books are closed")  # so the call itself is held for people: see `then`
    if not has("requests", order):
        return NotDone()
    # It has the request, and that may be all that it can say. Then the workflow asks, in the words of the business.
    return Done("in clearing" if order in ("o-4", "o-5", "o-6") else "captured")


@app.step(
    uses="bank",
    idempotent=False,
    retry=Retry(5, backoff="50ms", on=(ConnectionRefusedError,)),  # it was never sent
    probe=ask_bank,
    then=[Escalate("payments", within=FOUR_HOURS), Escalate("managers")],
)
def capture(order: str, cents: int, authorization: str) -> Literal["captured", "in clearing"]:
    if (BANK / "down").exists():
        raise ConnectionRefusedError("the bank does not listen")
    if order == "o-2" and attempt().number <= 2:
        raise Busy("200ms", "429: too many requests")
    first = not any(entries("requests", order))
    move("requests", order, 0)
    if order != "o-5" or not first:  # else the bank has the request, and lets it lie
        move("captured", order, cents)
    if first and order in ("o-3", "o-4", "o-5", "o-6", "o-7"):
        raise Ambiguous(f"was {euros(cents)} captured? No answer came after it was sent")
    return "captured"


@app.step(uses="bank", retry=Retry(3, backoff="50ms"))
def refund(order: str, cents: int) -> str:
    if not has("captured", order):
        move("captured", order, -cents)
    if attempt().number == 1:
        raise ConnectionResetError("the answer was lost on the way")
    return f"refund of {order}"


@app.step
def book(order: str, cents: int) -> None:
    if not has("ledger", order):
        move("ledger", order, cents)


@app.step
def send_receipt(order: str) -> str:
    if not has("receipts", order):
        move("receipts", order, 0)
    return f"receipt for {order}"


# --- the workflow


def euros(cents: int) -> str:
    return f"EUR {cents / 100:.2f}"


async def decided(question: str, form: Any, to: str) -> Any:
    """Ask people for four hours, then a manager for as long; money in doubt is not dropped because nobody was there."""
    while True:
        try:
            return await ask(question, form=form, to=to, within=FOUR_HOURS, escalate_to="managers")
        except TimeoutError:
            continue


async def approved_by_two(order: str, cents: int) -> bool:
    """Have two different people approve: who has done it cannot be the second one."""
    names: list[str] = []
    while len(names) < 2:
        others = f" It takes somebody else than {names[0]}." if names else ""
        said = await decided(f"Pay {euros(cents)} for {order}?{others}", Approval, "clerks")
        if not said.approved:
            return False
        if said.name not in names:
            names.append(said.name)
    publish("approved by", names)
    return True


@app.workflow
async def pay(order: str, cents: int) -> str:
    if cents > LIMIT and not await approved_by_two(order, cents):
        return f"{order} is refused"
    authorization = await authorize(order, cents)
    while await capture(order, cents, authorization) == "in clearing":
        decision = await decided(f"Was {euros(cents)} captured?", Decision, "payments")
        if decision == "refund":
            await refund(order, cents)
            return f"{order} is refunded"
        if decision == "captured":
            break
    await book(order, cents)
    return await send_receipt(order)


# --- people, and what is to be seen


def waiting(order: str, group: str | None = None) -> list[Any]:
    """Give what of that order waits for people, or for those of one group, and what nobody has said a word to."""
    items = [one for one in app.sync.inbox() if one.run == order and one.answered_by is None]
    return [one for one in items if group in (None, one.to)]


def show(item: Any) -> None:
    choices = " / ".join(item.form.get("enum", item.actions if item.kind != "question" else ["a name", "yes or no"]))
    print(f"  in the inbox of {item.to!r}: {item.run}: {item.question} [{choices}]")


def answer(order: str, value: object, by: str, group: str | None = None) -> None:
    """Be a person who answers, until the run has heard it: if the question went to others by then, be one of those."""
    before = kinds(order).count("answered")

    def heard() -> bool:
        items = waiting(order, group)
        if kinds(order).count("answered") > before:
            return True
        for item in items:
            show(item)
            with contextlib.suppress(AlreadyAnswered, QuestionNotFound):
                app.sync.answer(item.id, value, by=by)
        return False

    until(heard, f"nobody was asked about {order}")


def provide(order: str, value: object, by: str, group: str) -> None:
    """Be a person who decides about a call that is held: here, by saying what its result is."""
    [item] = until(lambda: waiting(order, group), f"nobody of {group!r} was asked about {order}")
    show(item)
    app.sync.resolve(item.id, "provide", value, by=by, reason="the bank has told me so")


def kinds(order: str) -> list[str]:
    return [event.kind for event in app.sync.handle(order).timeline()]


def breaker() -> str:
    return next((row.breaker or "" for row in app.sync.gates() if row.name == "uses:bank"), "closed")


def waits_for_bank(order: str) -> bool:
    return bool(app.sync.handle(order).status().health == "waiting_for_dependency")


def captures(order: str) -> list[Any]:
    """Give the attempts of an order to capture."""
    return [one for call in app.sync.handle(order).status().steps if call.step == "capture" for one in call.attempts]


def outage() -> list[Cure]:
    """Let the bank be down: three orders run into it, two come later and wait without an attempt, and all are paid."""
    print("\nthe bank is down")
    (BANK / "down").touch()
    early = [app.sync.start(pay, order, AMOUNT, id=order) for order in ("o-9", "o-10", "o-11")]
    until(lambda: breaker() == "open", "the breaker should have opened")
    refused = sum(len(captures(handle.id)) for handle in early)
    late = [app.sync.start(pay, order, AMOUNT, id=order) for order in ("o-12", "o-13")]
    for handle in late:
        until(partial(waits_for_bank, handle.id), f"{handle.id} should wait")
        should(not captures(handle.id), f"{handle.id} has used an attempt")
    print(f"  after {refused} refused attempts its breaker is open; o-12: {late[0].explain().sentences[0]}")
    (BANK / "down").unlink()
    print("  the bank is there again; and of those who deal with payments nobody was there for four hours:")
    answer("o-5", "not captured", "grace", "managers")
    provide("o-7", "captured", "grace", "managers")
    for handle in (*early, *late):
        result = handle.result(PATIENCE)
        should(result == f"receipt for {handle.id}", f"{handle.id}: {result}")
    until(lambda: breaker() == "closed", "the breaker should have closed")
    for handle in late:
        should(len(captures(handle.id)) == 1, f"{handle.id} has used more than one attempt")
    print("  its breaker is closed; all five orders are paid, and the two that came later used one attempt each")
    return [
        Cure("the bank is down (o-9 to o-11)", "five failures in a row: its breaker opens",
             "one canary, then all go on at a pace; the breaker closes", f"{refused} attempts in vain"),
        Cure("it is still down (o-12, o-13)", "the breaker is open", "they wait, and start when it closes",
             "no attempt"),
    ]  # fmt: skip


def story() -> None:
    BANK.mkdir()
    runs = {f"o-{n}": app.sync.start(pay, f"o-{n}", AMOUNT, id=f"o-{n}") for n in range(1, 8)}
    runs["o-8"] = app.sync.start(pay, "o-8", 250_000, id="o-8")

    print("what people are asked")
    answer("o-4", "captured", "ada")
    answer("o-6", "refund", "ada")
    answer("o-8", Approval("ada", approved=True), "ada")
    answer("o-8", Approval("ada", approved=True), "ada")
    answer("o-8", Approval("bob", approved=True), "bob")
    for order in ("o-1", "o-2", "o-3", "o-4", "o-6", "o-8"):
        runs[order].result(PATIENCE)
    cures = outage()

    titles = {
        "o-1": "the answer of the card network is lost: again at once, under the same key",
        "o-2": "too many requests: waited for, at no cost",
        "o-3": "no answer: the bank is asked, and has it",
        "o-4": "no answer, and the bank has not cleared it: a person says that it was captured",
        "o-5": "the same, and nobody answers in time: a manager says that it was not",
        "o-6": "the same, and a person wants it refunded",
        "o-7": "no answer, and the bank cannot be asked: the call is held for people, and then for managers",
        "o-8": "a large amount: two different people",
    }
    results = {order: tell(titles[order], runs[order]) for order in runs}

    expected = {order: f"receipt for {order}" for order in runs} | {"o-6": "o-6 is refunded"}
    should(results == expected, str(results))
    for order in (*runs, "o-9", "o-10", "o-11", "o-12", "o-13"):
        moved = [entry["cents"] for entry in entries("captured", order)]
        paid, back = [one for one in moved if one > 0], [one for one in moved if one < 0]
        due = 250_000 if order == "o-8" else AMOUNT
        should(paid == [due], f"{order} should be paid once: {moved}")
        should(back == ([-due] if order == "o-6" else []), f"{order} should be refunded once, or not: {moved}")
        should(len(list(entries("authorized", order))) == 1, f"{order} should be authorized once")
        should(total("ledger", order) == total("captured", order), f"the ledger of {order} is not the bank's")
        should(len(list(entries("receipts", order))) == (order != "o-6"), f"{order} should have one receipt")
    should(kinds("o-8").count("answered") == 3, "the same name twice should have been asked again")
    should(runs["o-8"].published()["approved by"] == ["ada", "bob"], "two different people should have approved")
    for order in ("o-5", "o-7"):
        should("remind" in kinds(order), f"somebody should have been reminded of {order}")
    should(len(captures("o-2")) == 3, "too many requests should have been waited for")
    sent = {order: len(list(entries("requests", order))) for order in runs}
    should(sent == dict.fromkeys(runs, 1) | {"o-5": 2}, f"nothing should have been sent again but by decision: {sent}")

    doubt = "no answer: the bank is asked by key"
    answers = {order: kinds(order).count("answered") for order in runs}
    asked = {order: f"{count} answer{'s' * (count > 1)}" for order, count in answers.items()}
    summary([
        Cure("an answer is lost (o-1)", "the connection breaks", "again after 50 ms, under the same key",
             cost(runs["o-1"], "authorize")),
        Cure("429: too many requests (o-2)", "the bank says so", "waited for as long as it said, no retry used",
             cost(runs["o-2"], "capture")),
        *cures,
        Cure("was it captured? (o-3)", doubt, "it has it: nothing is repeated", "1 query"),
        Cure("was it captured? (o-4)", f"{doubt}, has not cleared it", "a person: captured", asked["o-4"]),
        Cure("was it captured? (o-5)", f"{doubt}, has not cleared it",
             "reminded, then a manager: not captured; sent again", f"{asked['o-5']}, 4 h"),
        Cure("was it captured? (o-6)", f"{doubt}, has not cleared it",
             "a person: refund; its answer is lost, again under the same key", f"{asked['o-6']}, 1 refund"),
        Cure("was it captured? (o-7)", f"{doubt}, cannot say", "held for people, then a manager: captured",
             "1 decision, 4 h"),
        Cure("one name for two (o-8)", "the workflow compares them", "asked again: another person", asked["o-8"]),
    ])  # fmt: skip
    print(f"\nevery order is paid, and none twice; one is refunded, once; the ledger has {euros(total('ledger'))},"
          f" and so has the bank")  # fmt: skip


if __name__ == "__main__":
    perform(__file__, story)
