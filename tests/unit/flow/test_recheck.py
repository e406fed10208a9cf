"""A run that has ended, replayed from its journal: the same again, or what differs."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.unit.cli.records import an_attempt
from watchbill import App, InvalidOptionError, InvalidValueError, StepFailed, continue_as, publish, sleep
from watchbill.flow.recheck import recheck, recheck_live
from watchbill.flow.replay import WorkflowLoop, step_guard
from watchbill.flow.workflows import Workflow
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.run import NewRun, RunRow, as_inserted

BEGUN = 1_800_000_000_000_000
NO_INPUT = b"[]"

app = App()


@app.step
def echo(word: str) -> str:
    return word


def entry(seq: int, kind: Kind, key: str, digest: int, outcome: Outcome, body: bytes) -> JournalEntry:
    return JournalEntry(1, seq, kind, key, digest, 0, outcome, None, None, BEGUN + seq, body)


def journal_of(function: Callable[..., Any], end: bytes, outcome: Outcome = Outcome.OK) -> list[JournalEntry]:
    """What is recorded when each step gives the word it was called with, one after the other."""
    entries: list[JournalEntry] = []
    loop = WorkflowLoop(function, (), {})
    with step_guard():
        loop.begin(BEGUN)
        while loop.calls:
            call = next(iter(loop.calls.values()))
            body = b"" if call.kind is Kind.TIMER else call.body[1:-1]
            made = entry(len(entries) + 1, Kind(call.kind), call.key, call.digest, Outcome.OK, body)
            entries.append(made)
            loop.feed(made.key, made.at, Outcome.OK, body, made.digest)
        loop.close()
    return [*entries, entry(len(entries) + 1, Kind.END, "", 0, outcome, end)]


async def straight() -> str:
    words = await asyncio.gather(echo("a"), echo("b"))
    await sleep("1d")
    return "".join(words) + await echo("c")


def a_run(input: bytes = NO_INPUT) -> RunRow:
    made = as_inserted(NewRun(1, "default", "r", "w", 1, input), 1, BEGUN)
    return msgspec.structs.replace(made, begun_at=BEGUN)


def a_workflow(function: Callable[..., Any]) -> Workflow[..., Any]:
    return Workflow(function)


def check(function: Callable[..., Any], journal: list[JournalEntry]) -> str | None:
    difference = recheck(a_workflow(function), a_run(), journal)
    return None if difference is None else str(difference)


def test_the_same_code_does_the_same_again() -> None:
    assert check(straight, journal_of(straight, b'"abc"')) is None


def test_another_result_is_a_difference() -> None:
    said = check(straight, journal_of(straight, b'"xyz"'))
    assert said == 'the journal has the result "xyz", the code asks for the result "abc"'


def test_other_arguments_are_a_difference() -> None:
    async def other() -> str:
        words = await asyncio.gather(echo("b"), echo("a"))
        await sleep("1d")
        return "".join(words) + await echo("c")

    said = check(other, journal_of(straight, b'"abc"'))
    assert said is not None
    assert "an outcome of 'echo' with other arguments" in said


def test_a_call_that_is_not_asked_for_is_a_difference() -> None:
    async def shorter() -> str:
        return await echo("a")

    said = check(shorter, journal_of(straight, b'"abc"'))
    assert said is not None
    assert "nothing more: the workflow has ended" in said


def test_a_call_that_was_never_recorded_is_a_difference() -> None:
    async def longer() -> str:
        await straight()
        return await echo("d")

    said = check(longer, journal_of(straight, b'"abc"'))
    assert said == "the journal has the end of the run (ok), the code asks for more: the workflow has not ended there"


def test_a_failure_is_compared_by_type_and_message_but_not_by_addresses() -> None:
    async def fails() -> None:
        raise ValueError(f"with {object()!r}")

    body = b'{"type":"ValueError","message":"with <object object at 0x7f00>","traceback":"","cause":"raised"}'
    journal = [entry(1, Kind.END, "", 0, Outcome.FAILED, body)]
    assert check(fails, journal) is None
    other = [entry(1, Kind.END, "", 0, Outcome.FAILED, body.replace(b"ValueError", b"KeyError"))]
    said = check(fails, other)
    assert said is not None
    assert "the journal has a failure with KeyError" in said


def test_arguments_that_no_longer_fit_are_a_difference() -> None:
    async def takes(number: int) -> int:
        return number

    difference = recheck(a_workflow(takes), a_run(b'["text"]'), [entry(1, Kind.END, "", 0, Outcome.OK, b"1")])
    assert difference is not None
    assert "other arguments" in difference.asked


def test_a_cancelled_run_is_cancelled_again() -> None:
    async def waits() -> None:
        await sleep("1d")

    journal = [
        entry(1, Kind.CANCEL, "", 0, Outcome.OK, b'"enough"'),
        entry(2, Kind.END, "", 0, Outcome.CANCELLED, b'"enough"'),
    ]
    assert check(waits, journal) is None


def test_a_run_that_was_ended_without_its_code_is_followed_as_far_as_it_got() -> None:
    async def waits() -> None:
        await sleep("1d")

    assert check(waits, [entry(1, Kind.END, "", 0, Outcome.CANCELLED, b'"enough"')]) is None


def test_a_step_that_failed_fails_again() -> None:
    async def survives() -> str:
        try:
            return await echo("a")
        except StepFailed as failed:
            return failed.message

    failure = b'{"step":"echo","type":"OSError","message":"away","attempts":4,"cause":"raised","traceback":""}'
    begun = journal_of(survives, b'"away"')
    assert check(survives, [begun[0]._replace(outcome=Outcome.FAILED, body=failure), begun[1]]) is None


def test_a_workflow_that_never_rests_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watchbill.flow.drain.MOST_HOPS", 1_000)

    async def spins() -> None:
        while True:
            await asyncio.sleep(0)

    said = check(spins, [entry(1, Kind.END, "", 0, Outcome.OK, b"null")])
    assert said is not None
    assert "something that no replay could repeat" in said


@pytest.mark.parametrize(
    ("kind", "error"),
    [(Kind.LATE, b'{"type":"DeadlineExceeded"'), (Kind.STOPPED, b'{"type":"Stopped"')],
)
def test_run_that_was_late_or_stopped_is_so_again(kind: Kind, error: bytes) -> None:
    async def waits() -> None:
        await sleep("1d")

    said = check(waits, [entry(1, kind, "", 0, Outcome.OK, b'"enough"'), entry(2, Kind.END, "", 0, Outcome.OK, b"1")])
    assert said is not None
    assert said.startswith("the journal has the result 1, the code asks for a failure")
    assert error.split(b'"')[3].decode() in said


def test_run_that_goes_on_as_another_where_it_ended_is_a_difference() -> None:
    async def goes_on() -> None:
        await continue_as(following)

    said = check(goes_on, [entry(1, Kind.END, "", 0, Outcome.OK, b"1")])
    assert said == "the journal has the result 1, the code asks for to go on as 'following'"


@app.workflow
async def following() -> None:
    """Follow."""


def test_message_that_came_after_the_end_of_the_code_is_no_difference() -> None:
    async def deaf() -> int:
        return 1

    message = entry(1, Kind.MESSAGE, "paid", 0, Outcome.OK, b'["m-1",1]')
    assert check(deaf, [message, entry(2, Kind.END, "", 0, Outcome.OK, b"1")]) is None


def test_run_whose_code_has_not_begun_has_no_difference() -> None:
    waiting = msgspec.structs.replace(a_run(), begun_at=None)
    assert recheck_live(a_workflow(straight), waiting, [], []) is None
    assert recheck(a_workflow(straight), waiting, [entry(1, Kind.END, "", 0, Outcome.CANCELLED, b'""')]) is None


def test_rows_of_a_live_run_are_held_against_what_its_code_asks_for() -> None:
    def differs(*rows: Any) -> str | None:
        difference = recheck_live(a_workflow(straight), a_run(), [], rows)
        return None if difference is None else str(difference)

    asked = an_attempt("echo", args=b'["a"]')
    assert differs(asked) is None
    assert differs(msgspec.structs.replace(asked, part=7)) is None  # of before a rewind
    assert "an attempt of 'echo' with b'[\"x\"]'" in str(differs(msgspec.structs.replace(asked, args=b'["x"]')))
    other = msgspec.structs.replace(asked, call="charge")
    assert "an attempt of 'charge', the code asks for echo, echo.2" in str(differs(other))
    assert differs(msgspec.structs.replace(other, cancel=True)) is None


def test_words_of_a_workflow_that_make_no_sense_are_refused() -> None:
    async def odd() -> list[str]:
        met = []
        for say in (lambda: publish(3, 1), lambda: continue_as(echo)):  # type: ignore[arg-type]
            try:
                await say()
            except (InvalidOptionError, InvalidValueError) as error:
                met.append(str(error))
        return met

    said = check(odd, [entry(1, Kind.END, "", 0, Outcome.OK, b"1")])
    assert said is not None
    assert "the key of publish() must be text, got 3" in said
    assert "continue_as() takes a workflow" in said
