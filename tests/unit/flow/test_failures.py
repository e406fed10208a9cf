"""Whatever a program raises is written down, and writing it down never fails."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from watchbill.clock import SECOND
from watchbill.errors import Busy, ErrorData, InvalidValueError, NotInWorkflowError, Permanent, RunFailed, StepFailed
from watchbill.flow import failures
from watchbill.flow.failures import LEAST_PATIENCE, LONGEST_TEXT, failure_of, final_of, run_error_of, step_failed
from watchbill.flow.steps import Step
from watchbill.model.failure import Cause, Failure, FinalFailure, Remedy, RunError
from watchbill.model.policy import Policy, Retry, policy_of


class CardDeclined(Exception):
    class Because(Exception):
        pass


def a_policy(**options: Any) -> Policy:
    return policy_of(Retry(3, **options), "1h", own=False)


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def failing_in(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except BaseException as caught:
        return caught
    raise AssertionError("it did not fail")


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ValueError("x"), "ValueError"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (ExceptionGroup("g", [ValueError()]), "ExceptionGroup"),
        (CardDeclined("x"), f"{__name__}.CardDeclined"),
        (CardDeclined.Because("x"), f"{__name__}.CardDeclined.Because"),
        (asyncio.CancelledError(), "asyncio.exceptions.CancelledError"),
        (Permanent("x"), "Permanent"),
        (InvalidValueError("x"), "InvalidValueError"),
        (type("Boom", (Exception,), {"__module__": "__watchbill_main__"})(), "__main__.Boom"),
    ],
)
def test_a_class_is_named_as_its_author_would(error, name):
    assert failure_of(error).type == name


def test_a_failure_holds_message_and_traceback():
    def step() -> None:
        raise ValueError("no such order")

    failure = failure_of(failing_in(step))
    assert failure.message == "no such order"
    assert "in step\n" in failure.traceback
    assert failure.traceback.endswith("ValueError: no such order\n")
    assert failure.cause is Cause.RAISED


def test_causes_and_notes_are_in_the_traceback():
    def step() -> None:
        try:
            raise KeyError("a")
        except KeyError as error:
            error.add_note("look here")
            raise ValueError("b") from error

    failure = failure_of(failing_in(step), cause=Cause.LATE)
    assert "KeyError: 'a'" in failure.traceback
    assert "look here" in failure.traceback
    assert failure.cause is Cause.LATE


def failing_step(function: Callable[..., Any], *args: Any) -> BaseException:
    """Give what the executor catches: its first frames are ours, the step's come below."""
    error = failing_in(lambda: Step(function, name="step")(*args).send(None))
    frames = error.__traceback__
    while frames is not None and not frames.tb_frame.f_globals["__name__"].startswith("watchbill"):
        frames = frames.tb_next
    assert frames is not None
    return error.with_traceback(frames)


def test_frames_of_ours_are_left_out_of_the_traceback():
    def work() -> None:
        raise ValueError("x")

    failure = failure_of(failing_step(work))
    assert "steps.py" not in failure.traceback
    assert "in work\n" in failure.traceback


# --- hostile exceptions


class Hostile(Exception):
    """Raises from whatever it is asked."""

    def __init__(self, how: BaseException) -> None:
        self.how = how

    def __str__(self) -> str:
        raise self.how

    __repr__ = __str__


class NoClass(Exception):
    @property  # type: ignore[misc]
    def __class__(self):
        raise RuntimeError("do not ask")


class NoCause(Exception):
    @property
    def __cause__(self):  # type: ignore[override]
        raise RuntimeError("do not ask")


class NoTraceback(Exception):
    @property
    def __traceback__(self):  # type: ignore[override]
        raise RuntimeError("do not ask")


class Meta(type):
    def __getattribute__(cls, name):
        raise RuntimeError(name)


class Nameless(Exception, metaclass=Meta):
    pass


class NotText(Exception):
    def __str__(self) -> str:
        return 3  # type: ignore[return-value]


class SlyText(str):
    def __getitem__(self, index):
        raise RuntimeError("sliced")

    def __len__(self):
        return 10**18

    def encode(self, *_: Any, **__: Any):
        raise RuntimeError("encoded")


class Sly(Exception):
    def __str__(self) -> str:
        return SlyText("sly")


class NoArgs(Exception):
    def __init__(self) -> None:
        self.args = (self,)


class BadNotes(Exception):
    __notes__ = 3  # type: ignore[assignment]


def circular() -> BaseException:
    one, two = ValueError("one"), KeyError("two")
    one.__cause__, two.__cause__ = two, one
    return one


def own_cause() -> BaseException:
    error = ValueError("x")
    error.__cause__ = error.__context__ = error
    return error


def long_chain() -> BaseException:
    error = ValueError("first")
    for number in range(2_000):
        after = ValueError(f"after {number}")
        after.__cause__ = error
        error = after
    return error


def deep_group() -> BaseException:
    error: Exception = ValueError("inside")
    for _ in range(200):
        error = ExceptionGroup("outside", [error])
    return error


def deep_recursion() -> BaseException:
    def down(n: int) -> None:
        up(n + 1)

    def up(n: int) -> None:
        down(n + 1)

    return failing_in(lambda: down(0))


def with_notes() -> BaseException:
    error = ValueError("x")
    for _ in range(100):
        error.add_note("y" * 100_000)
    return error


HOSTILE: dict[str, Callable[[], BaseException]] = {
    "str raises": lambda: Hostile(ValueError("no")),
    "str raises itself": lambda: Hostile(Hostile(ValueError())),
    "str exits": lambda: Hostile(SystemExit(1)),
    "str interrupts": lambda: Hostile(KeyboardInterrupt()),
    "str is cancelled": lambda: Hostile(asyncio.CancelledError()),
    "str runs out of memory": lambda: Hostile(MemoryError()),
    "str stops a generator": lambda: Hostile(GeneratorExit()),
    "str gives no text": NotText,
    "str gives a sly text": Sly,
    "no class": NoClass,
    "no cause": NoCause,
    "no traceback": NoTraceback,
    "no attributes at all": lambda: type.__call__(Nameless),
    "module is no text": lambda: type("Odd", (Exception,), {"__module__": 3})(),
    "itself as argument": NoArgs,
    "notes are no list": BadNotes,
    "circular cause": circular,
    "its own cause": own_cause,
    "long chain of causes": long_chain,
    "group": lambda: ExceptionGroup("g", [ValueError("a"), ExceptionGroup("h", [KeyError("b")])]),
    "group of hostile ones": lambda: ExceptionGroup("g", [Hostile(SystemExit()), NotText(), Sly()]),
    "base group": lambda: BaseExceptionGroup("g", [KeyboardInterrupt(), SystemExit(2)]),
    "deep group": deep_group,
    "wide group": lambda: ExceptionGroup("g", [ValueError(str(n)) for n in range(500)]),
    "deep recursion": deep_recursion,
    "ten megabytes": lambda: ValueError("x" * 10_000_000),
    "a megabyte of bytes": lambda: ValueError(b"\xff" * 1_000_000),
    "a megabyte of lines": lambda: ValueError("x\n" * 500_000),
    "wide characters": lambda: ValueError("\U0001f600" * 20_000),
    "large notes": with_notes,
    "surrogates": lambda: ValueError("a\ud800b"),
    "many surrogates": lambda: ValueError("\udfff" * 100_000),
    "zero bytes": lambda: ValueError("\x00" * 10),
    "escape codes": lambda: ValueError("\x1b[2J"),
    "bytes": lambda: ValueError(b"\xff\xfe"),
    "no message": ValueError,
    "many arguments": lambda: ValueError(1, object(), ["a"]),
    "unicode error": lambda: failing_in(lambda: b"\xff".decode()),
    "os error": lambda: failing_in(lambda: Path("/no/such/file").read_text()),
    "syntax error": lambda: failing_in(lambda: compile("a b", "<x\ud800>", "exec")),
    "syntax error without text": lambda: SyntaxError("x", ("f", None, None, None)),
    "syntax error with nonsense": lambda: SyntaxError("x", ("f", "1", 10**9, "y")),  # type: ignore[arg-type]
    "stop iteration": lambda: StopIteration(3),
    "stop async iteration": StopAsyncIteration,
    "generator exit": GeneratorExit,
    "system exit": lambda: SystemExit("bye"),
    "keyboard interrupt": KeyboardInterrupt,
    "cancelled": lambda: asyncio.CancelledError("why"),
    "memory": MemoryError,
    "assertion": lambda: AssertionError(),
    "key error": lambda: KeyError("k"),
    "name error": lambda: failing_in(lambda: nowhere),  # type: ignore[name-defined]  # noqa: F821
    "attribute error": lambda: failing_in(lambda: object().nothing),  # type: ignore[attr-defined]
    "import error": lambda: ImportError("x", name="\ud800"),
    "no such module": lambda: failing_in(lambda: __import__("no_such_module_here")),
    "base exception": lambda: BaseException("x"),
    "ours": lambda: NotInWorkflowError("run_in_executor"),
    "a pydantic-like one": lambda: type("V", (ValueError,), {"errors": lambda self: 1 / 0})("x"),
    "timeout": TimeoutError,
    "warning": lambda: UserWarning("x"),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_no_exception_is_too_hostile_to_be_written_down(make):
    error = raised(make())
    failure = failure_of(error, a_policy(on=(ValueError,), never=(KeyError,)))
    body = msgspec.json.encode(failure)
    assert msgspec.json.decode(body, type=Failure) == failure
    for text in (failure.message, failure.traceback):
        assert len(text.encode()) <= LONGEST_TEXT
    assert failure.type
    assert failure.traceback
    run_error = run_error_of(error)
    assert msgspec.json.decode(msgspec.json.encode(run_error), type=RunError) == run_error


def test_there_are_sixty_hostile_ones():
    assert len(HOSTILE) >= 60


def test_a_long_message_is_cut_with_a_note():
    failure = failure_of(ValueError("x" * 10_000_000))
    assert failure.message.startswith("xxx")
    assert failure.message.endswith("x... (cut: 10,000,000 characters in all)")


def test_a_long_message_does_not_push_the_frames_out_of_the_traceback():
    def step() -> None:
        raise ValueError("x" * 10_000_000)

    assert "in step\n" in failure_of(failing_in(step)).traceback


def test_of_a_long_traceback_the_end_is_kept():
    failure = failure_of(deep_recursion())
    assert failure.traceback.startswith("(cut: ")
    assert "RecursionError" in failure.traceback.splitlines()[-1]


def test_what_is_no_utf8_is_replaced():
    assert failure_of(ValueError("a\ud800b")).message == "a?b"


# --- what the author wants


def remedy(error: BaseException, **options: Any) -> Remedy:
    return failure_of(raised(error), a_policy(**options)).remedy


def test_any_exception_is_retried():
    assert remedy(ValueError()) is Remedy.RETRY
    assert failure_of(SystemExit()).remedy is Remedy.RETRY
    assert failure_of(StepFailed(step="s", type="t", message="m", attempts=1, cause="late")).remedy == "retry"


def test_permanent_gives_up_whatever_the_retry_says():
    assert remedy(Permanent("x")) is Remedy.GIVE_UP
    assert remedy(Permanent("x"), on=(Permanent,)) is Remedy.GIVE_UP
    assert failure_of(Permanent("x")).remedy is Remedy.GIVE_UP


def test_a_value_that_cannot_be_stored_gives_up():
    assert remedy(InvalidValueError("x")) is Remedy.GIVE_UP


def test_on_limits_and_never_excludes():
    assert remedy(ValueError(), on=(OSError,)) is Remedy.NEXT_RUNG
    assert remedy(TimeoutError(), on=(OSError,)) is Remedy.RETRY
    assert remedy(TimeoutError(), never=(OSError,)) is Remedy.NEXT_RUNG
    assert remedy(TimeoutError(), on=(OSError,), never=(TimeoutError,)) is Remedy.NEXT_RUNG
    assert remedy(ValueError(), never=(OSError,)) is Remedy.RETRY


def test_a_type_error_of_the_call_itself_gives_up_and_one_from_inside_does_not():
    def step(a: int) -> int:
        return a + "x"  # type: ignore[operator]

    assert failure_of(failing_step(step)).remedy is Remedy.GIVE_UP
    assert failure_of(failing_step(step, 1)).remedy is Remedy.RETRY


# --- runs and steps


def test_a_run_that_failed_by_a_step_keeps_the_facts_of_the_step():
    final = FinalFailure("charge", "shop.Declined", "no money", 4, Cause.LATE, "Traceback ...")
    error = step_failed(final)
    assert (error.step, error.type, error.message, error.attempts) == ("charge", "shop.Declined", "no money", 4)
    assert error.cause == "late"
    assert run_error_of(raised(error)) == RunError(
        "shop.Declined", "no money", "Traceback ...", step="charge", attempts=4, cause=Cause.LATE
    )


def test_a_step_failure_without_a_traceback_gets_that_of_the_workflow():
    def workflow() -> None:
        raise StepFailed(step="s", type="TypeError", message="m", attempts=0, cause="raised")

    assert "in workflow\n" in run_error_of(failing_in(workflow)).traceback


def test_any_other_exception_of_a_workflow_is_no_steps():
    def workflow() -> None:
        raise ValueError("x")

    error = run_error_of(failing_in(workflow))
    assert (error.type, error.message, error.step, error.attempts) == ("ValueError", "x", None, None)
    assert "in workflow\n" in error.traceback


def test_a_step_failure_that_somebody_made_up_is_an_exception_like_any_other():
    class Mine(StepFailed):
        def __init__(self) -> None:
            Exception.__init__(self, "mine")

    assert run_error_of(Mine()).message == "mine"
    odd = StepFailed(step="s", type="t", message="m", attempts=1, cause="nonsense")
    assert run_error_of(odd).type == "StepFailed"
    wrong = StepFailed(step="s", type=3, message="m", attempts=1, cause="late")  # type: ignore[arg-type]
    assert run_error_of(wrong).type == "StepFailed"


def test_formatting_keeps_the_frames_even_when_the_rest_cannot_be_shown():
    def step() -> None:
        raise NoCause("x")

    assert "in step\n" in failures._traceback(failing_in(step))


def a_step_failed(step: str = "charge", message: str = "no line") -> StepFailed:
    return StepFailed(step=step, type="ConnectionError", message=message, attempts=4, cause="raised")


def test_of_whose_failure_an_exception_is_is_said_for_a_step_a_run_below_and_a_group() -> None:
    final = FinalFailure("charge", "ConnectionError", "no line", 4, Cause.RAISED)
    below = RunFailed("o/1", ErrorData("ConnectionError", "no line", ""), step="charge", attempts=4, cause="raised")
    group = ExceptionGroup("two", [ValueError("x"), ExceptionGroup("one", [a_step_failed()])])
    assert [final_of(error) for error in (a_step_failed(), below, group)] == [final] * 3


def test_what_is_no_steps_failure_is_said_to_be_none() -> None:
    own = RunFailed("o/1", ErrorData("KeyError", "x", ""), step=None, attempts=None, cause="raised")
    odd = a_step_failed()
    odd.attempts = "many"  # type: ignore[assignment]
    for error in (ValueError("x"), own, odd, ExceptionGroup("two", [ValueError("x"), own])):
        assert final_of(error) is None


def test_of_what_failed_for_good_no_secret_is_told_and_no_more_than_is_compared() -> None:
    final = final_of(a_step_failed(message=f"hunter22 {'x' * 5_000}"), ("hunter22",))
    assert final is not None
    assert "hunter22" not in final.message
    assert len(final.message) == 2_000


@pytest.mark.parametrize(
    ("said", "waits"),
    [
        ("30s", 30 * SECOND),
        ("30", 30 * SECOND),
        (" 1.5 ", 3 * SECOND // 2),
        (0.25, SECOND // 4),
        (timedelta(minutes=2), 120 * SECOND),
        (0, LEAST_PATIENCE),
        ("1ms", LEAST_PATIENCE),
    ],
)
def test_what_is_busy_says_how_long_also_as_headers_do_and_never_at_once(said: Any, waits: int) -> None:
    failure = failure_of(Busy(said), Policy(backoff=7 * SECOND))
    assert (failure.remedy, failure.retry_after) == (Remedy.WAIT, waits)
    assert "backoff" not in failure.message


@pytest.mark.parametrize("said", [None, -1, "soon", "", True, float("nan"), "Wed, 21 Oct 2026 07:28:00 GMT", "9" * 40])
def test_what_is_busy_and_says_no_duration_is_waited_for_as_its_step_wants_and_says_so(said: Any) -> None:
    failure = failure_of(Busy(said), Policy(backoff=7 * SECOND))
    assert (failure.remedy, failure.retry_after) == (Remedy.WAIT, 7 * SECOND)
    assert "its step's backoff is waited for" in failure.message
    assert failure_of(Busy(said), Policy(backoff=0)).retry_after == LEAST_PATIENCE
