"""Payments over a bank that fails: `python examples/payment.py`.

Six orders: a network error is tried again at once; "too many requests" is waited for, and costs nothing; of an answer
that never came the bank is asked by the order's key; where the bank does not know either, a person decides, in time or
else another one, and nothing is charged twice; and a large amount is approved by a clerk in time, or else by a manager.
"""

import json
import os
import sys
import time
from pathlib import Path

from stage import PATIENCE, perform, play

from watchbill import Ambiguous, App, Busy, Done, Escalate, NotDone, Retry, Unknown, ask, attempt

BANK = Path(os.environ.get("WATCHBILL_STAGE", ".")) / "bank"
LARGE = 10_000
app = App()


def charges(order: str) -> int:
    """Count how often the bank has really taken the money."""
    return len(list(BANK.glob(f"{order}.charge.*")))


def charge(order: str) -> str:
    place = BANK / f"{order}.charge.{len(list(BANK.glob(f'{order}.charge.*'))) + 1}"
    place.write_text(json.dumps({"key": attempt().key}))
    return f"receipt for {order}"


def ask_bank(order: str, cents: int) -> Done | NotDone | Unknown:
    """Ask the bank whether it has the charge."""
    if order in ("o-4", "o-6"):
        return Unknown("the bank's books are closed")
    return Done(f"receipt for {order}") if charges(order) else NotDone()


@app.step(
    idempotent=False,
    retry=Retry(3, backoff="100ms", on=(ConnectionRefusedError,)),
    probe=ask_bank,
    then=[Escalate("payments", within="5s"), Escalate("managers", within="1h")],
)
def capture(order: str, cents: int) -> str:
    if order == "o-1" and attempt().number == 1:
        raise ConnectionRefusedError("the bank does not listen")  # it was never sent
    if order == "o-2" and attempt().number <= 2:
        raise Busy("200ms", "429: too many requests")
    receipt = charge(order)
    if order in ("o-3", "o-4", "o-6"):
        raise Ambiguous("no answer after it was sent")
    return receipt


@app.step
def book(order: str, receipt: str) -> str:
    (BANK / f"{order}.booked").write_text(receipt)
    return receipt


@app.workflow
async def pay(order: str, cents: int) -> str:
    if cents >= LARGE:
        approved = await ask(
            f"Pay {cents / 100:.2f} EUR for {order}?", form=bool, to="clerks", within="2s", escalate_to="managers"
        )
        if not approved:
            return "refused"
    return await book(order, await capture(order, cents))


def item_for(group: str, order: str) -> str:
    """Wait until something of that order is there for a group of people."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for item in app.sync.inbox():
            if item.run == order and item.to == group:
                print(f"  in the inbox of {group!r}: {item.question}")
                return str(item.id)
        time.sleep(0.1)
    sys.exit(f"nobody of {group!r} was asked about {order}")


def decided(order: str) -> None:
    """Be the person: look at the bank's statement, and say what it says."""
    item = item_for("payments", order)
    app.sync.resolve(item, "provide", f"receipt for {order}", by="ada", reason="it is on the bank's statement")


def decided_late(order: str) -> None:
    """Be the manager: nobody of those who deal with payments was there in time."""
    item = item_for("managers", order)
    app.sync.resolve(item, "provide", f"receipt for {order}", by="grace", reason="the bank has told me so")


def approved(order: str) -> None:
    """Be the manager: nobody of the clerks was there in time."""
    app.sync.answer(item_for("managers", order), True, by="grace")


def story() -> None:
    BANK.mkdir()
    for order, cents, title, person in (
        ("o-1", 1_200, "the bank does not listen: again at once", None),
        ("o-2", 1_200, "too many requests: waited for, at no cost", None),
        ("o-3", 1_200, "no answer: the bank is asked, and has it", None),
        ("o-4", 1_200, "no answer, and the bank does not know: a person decides", decided),
        ("o-5", 120_000, "a large amount: no clerk in time, so a manager", approved),
        ("o-6", 1_200, "no answer, the bank does not know, and nobody decides in time: a manager", decided_late),
    ):
        result = play(app, f"{order}: {title}", pay, order, cents, id=order, meanwhile=person)
        if result != f"receipt for {order}" or charges(order) != 1:
            sys.exit(f"{order} should have been charged once: {result}, {charges(order)} times")
    print("\nevery order is paid, and none twice")


if __name__ == "__main__":
    perform(__file__, story)
