"""A step is durable inside a workflow, and simply its function outside of one."""

import asyncio
import functools
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from watchbill import App, Done, NotDone, Secret, Unknown
from watchbill.clock import SECOND
from watchbill.errors import InvalidOptionError, InvalidValueError, StepFailed
from watchbill.flow.ladder import Switch
from watchbill.flow.probes import NotDoneError, UnknownError
from watchbill.flow.replay import Call, WorkflowLoop
from watchbill.flow.steps import MOST_RESOLVED, NO_WISHES, Step, Wishes
from watchbill.model.call import Outcome
from watchbill.model.policy import Policy, Retry
from watchbill.model.usual import Modes, modes_of


@dataclass
class Film:
    path: str
    minutes: int = 0


def encode(path: str, codec: str = "fast") -> str:
    """Encode a film."""
    return f"{path}.{codec}"


async def measure(film: Film) -> int:
    return film.minutes


ENCODE, MEASURE = Step(encode), Step(measure)


# --- outside a workflow


async def test_outside_a_workflow_it_simply_runs_the_function():
    assert await ENCODE("a", codec="slow") == "a.slow"
    assert await MEASURE(Film("a", 90)) == 90
    assert await ENCODE.options(timeout="2h", key="x")("a") == "a.fast"
    assert await asyncio.gather(ENCODE("a"), asyncio.create_task(MEASURE(Film("b", 3)))) == ["a.fast", 3]


async def test_outside_a_workflow_arguments_are_not_copied_or_checked():
    film = Film("a")
    assert await Step(lambda film: film, name="same")(film) is film
    assert await ENCODE(3) == "3.fast"  # type: ignore[arg-type]


def test_it_looks_like_its_function():
    assert ENCODE.plain is encode
    assert ENCODE.name == ENCODE.__name__ == "encode"  # type: ignore[attr-defined]
    assert ENCODE.__doc__ == "Encode a film."
    assert repr(ENCODE) == "<step 'encode'>"
    assert not ENCODE.is_async
    assert MEASURE.is_async
    assert ENCODE.signature.owner == "step 'encode'"


async def test_objects_and_partials_can_be_steps_under_a_name():
    class Add:
        async def __call__(self, a: int) -> int:
            return a + 1

    assert await Step(Add(), name="add")(1) == 2
    assert await Step(functools.partial(encode, "a"), name="encode_a")() == "a.fast"
    assert await Step(functools.partial(measure, Film("a", 7)), name="measure_a")() == 7


# --- inside a workflow


SLOPPY_ENCODE: Any = ENCODE  # called as by somebody without a type checker
SLOPPY_MEASURE: Any = MEASURE
SLOPPY_NAN: Any = math.nan


def started(workflow: Callable[[], Awaitable[Any]]) -> WorkflowLoop:
    loop = WorkflowLoop(workflow, (), {})
    loop.begin(0)
    return loop


def outcome_of(workflow: Callable[[], Awaitable[Any]]) -> Any:
    ended = started(workflow).ended
    assert ended is not None
    if ended.error is not None:
        raise ended.error
    return ended.value


def the_call(workflow: Callable[[], Awaitable[Any]]) -> Call:
    [call] = started(workflow).take_commands()
    return call


def test_a_call_holds_all_that_is_needed_to_do_it():
    async def workflow() -> str:
        return await ENCODE("a", codec="slow")

    call = the_call(workflow)
    assert call.target is ENCODE
    assert (call.key, call.name, call.body) == ("encode", "encode", b'["a","slow"]')
    assert call.args == (("a", "slow"), {})
    assert call.options is None
    assert call.decode(b'"x"') == "x"


def test_the_step_gets_a_copy_of_its_arguments():
    film = Film("a")

    async def workflow() -> int:
        return await MEASURE(film)

    call = the_call(workflow)
    assert call.args == ((film,), {})
    assert call.args[0][0] is not film


def test_the_workflow_gets_the_typed_result():
    def make() -> Film:
        raise AssertionError("not called here")

    async def workflow() -> Film:
        return await Step(make)()

    loop = started(workflow)
    [call] = loop.take_commands()
    loop.feed("make", 1, Outcome.OK, b'{"path":"a","minutes":3}', call.digest)
    assert loop.ended is not None
    assert loop.ended.value == Film("a", 3)


def test_calls_can_be_gathered_and_made_tasks():
    async def workflow() -> list[str]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(ENCODE("c"))
        return [*await asyncio.gather(ENCODE("a"), asyncio.create_task(ENCODE("b"))), await task]

    loop = started(workflow)
    for key, result in [("encode", b'"C"'), ("encode.2", b'"A"'), ("encode.3", b'"B"')]:
        loop.feed(key, 1, Outcome.OK, result, loop.calls[key].digest)
    assert loop.ended is not None
    assert loop.ended.value == ["A", "B", "C"]


def test_options_of_a_call_travel_with_it():
    async def workflow() -> str:
        return await ENCODE.options(key="chunk-12", timeout="2h", retry=1)("a")

    call = the_call(workflow)
    assert call.key == "chunk-12"
    assert isinstance(call.options, Wishes)
    assert ENCODE.resolve(NO_WISHES, call.options).policy.timeout == 7_200 * SECOND


@pytest.mark.parametrize(
    ("call", "type", "message"),
    [
        (SLOPPY_ENCODE, "TypeError", "missing a required argument: 'path'"),
        (lambda: SLOPPY_ENCODE("a", "b", "c"), "TypeError", "too many positional arguments"),
        (lambda: SLOPPY_ENCODE("a", speed=3), "TypeError", "unexpected keyword argument 'speed'"),
        (lambda: SLOPPY_ENCODE(3), "InvalidValueError", "argument 'path' of step 'encode' must be str, got int"),
        (lambda: SLOPPY_ENCODE(b"a"), "InvalidValueError", "argument 'path' of step 'encode' must be str, got bytes"),
        (lambda: SLOPPY_MEASURE({"minutes": 3}), "InvalidValueError", "argument 'film' of step 'measure' must be"),
        (lambda: SLOPPY_MEASURE(Film("a", SLOPPY_NAN)), "InvalidValueError", "at .minutes it is nan"),
        (lambda: SLOPPY_MEASURE(object()), "InvalidValueError", "it is of type object"),
    ],
)
def test_a_call_that_does_not_fit_fails_where_it_is_made(call, type, message):
    async def workflow() -> str:
        with pytest.raises(StepFailed) as failed:
            call()
        error = failed.value
        assert (error.type, error.attempts, error.cause) == (type, 0, "raised")
        assert error.step in ("encode", "measure")
        return error.message

    assert message in outcome_of(workflow)


def test_a_result_is_read_as_its_type_in_replay_too():
    async def workflow() -> int:
        return await MEASURE(Film("a"))

    assert the_call(workflow).decode(b"3") == 3


# --- what cannot be a step


class SomeClass:
    def method(self, x: str) -> str:
        return x

    @staticmethod
    def static(x: int) -> int:
        return x

    @classmethod
    def of_class(cls, x: int) -> int:
        return x


def generator() -> Any:
    yield 1


async def async_generator() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (generator, "it is a generator"),
        (async_generator, "it is a generator"),
        (functools.partial(generator), "it is a generator"),
        (SomeClass, "it is a class"),
        (SomeClass.method, "it is a method"),
        (lambda x: x, "has no name of its own"),
        (functools.partial(encode, "a"), "has no name of its own"),
        (SomeClass(), "it cannot be called"),
        (None, "it cannot be called"),
        ("encode", "it cannot be called"),
        (ENCODE, "it is one already"),
    ],
)
def test_what_cannot_be_a_step_is_refused(function, why):
    with pytest.raises(InvalidOptionError, match=why):
        Step(function)


async def test_bound_and_static_methods_are_functions():
    assert await Step(SomeClass.static)(3) == 3
    assert await Step(SomeClass.of_class)(4) == 4
    assert await Step(SomeClass().method)("x") == "x"


@pytest.mark.parametrize("name", ["", "a/b", "a b", "charge.2", "a.b.10", "~", "@x", "x" * 201, 3, "\n"])
def test_names_that_could_be_mistaken_for_keys_are_refused(name):
    with pytest.raises(InvalidOptionError, match="the name of a step"):
        Step(encode, name=name)


@pytest.mark.parametrize("name", ["a", "billing.charge", "billing:charge-2", "größe", "x" * 200, "v2.1a"])
def test_other_names_are_fine(name):
    assert Step(encode, name=name).name == name


# --- options


def test_the_defaults_are_those_of_the_house():
    resolved = ENCODE.resolve()
    assert resolved.policy == Policy(retries=3, timeout=3_600 * SECOND, own=False)
    assert msgspec.json.decode(resolved.policy_body, type=Policy) == resolved.policy


def test_a_call_outranks_its_step_which_outranks_its_workflow():
    workflow = Wishes(Retry(7), timedelta(minutes=7))
    call = Wishes(Retry(9), 9)

    def ranks(step: Step[..., Any], *wishes: Any) -> tuple[int, float]:
        policy = step.resolve(*wishes).policy
        return policy.retries, policy.timeout / SECOND

    plain, strict = Step(encode), Step(encode, retry=Retry(1, backoff="5s"), timeout="1m")
    assert ranks(plain, workflow) == (7, 420)
    assert ranks(strict, workflow) == (1, 60)
    assert ranks(strict, workflow, call) == (9, 9)
    assert ranks(strict, workflow, Wishes(timeout=5)) == (1, 5)
    assert ranks(plain, workflow, Wishes(retry=Retry(0))) == (0, 420)
    assert strict.resolve(workflow).policy.backoff == 5 * SECOND


def test_whose_word_counts_is_kept_with_the_policy():
    workflow = Wishes(Retry(7), timedelta(minutes=7))
    plain, strict = Step(encode), Step(encode, retry=1, stall="1m")
    assert plain.resolve().policy.origin == "ddd"
    assert plain.resolve(workflow).policy.origin == "wwd"
    assert strict.resolve(workflow).policy.origin == "sws"
    assert strict.resolve(workflow, Wishes(timeout=5)).policy.origin == "scs"
    switched = Step(encode, then=Switch(needs="cpu", retry=0))
    assert switched.resolve(workflow).policy.ladder[0].policy == msgspec.structs.replace(
        switched.resolve(workflow).policy, retries=0, cures=None, origin="rwd", needs=("cpu",)
    )


def test_policies_are_settled_once():
    workflow = Wishes(Retry(7))
    assert ENCODE.resolve(workflow) is ENCODE.resolve(workflow)
    assert ENCODE.resolve(workflow, Wishes(timeout="5s", key="a")) is ENCODE.resolve(workflow, Wishes(timeout="5s"))


def test_timeouts_computed_for_each_call_do_not_fill_the_memory():
    step = Step(encode)
    for seconds in range(1, MOST_RESOLVED + 10):
        step.resolve(NO_WISHES, Wishes(timeout=seconds))
    assert len(step._resolved) <= MOST_RESOLVED


def test_a_step_in_a_process_of_its_own_needs_a_row():
    own = Step(encode, isolation="own")
    assert own.needs_row
    assert own.resolve().policy.own
    assert not ENCODE.needs_row


def test_stall_and_priority_of_a_call_come_before_those_of_its_step():
    step = Step(encode, stall="30s", priority=5)
    assert (step.resolve().policy.stall, step.resolve().policy.priority) == (30_000_000, 5)
    asked = step.options(stall="1m", priority=-5).wishes
    assert (step.resolve(NO_WISHES, asked).policy.stall, step.resolve(NO_WISHES, asked).policy.priority) == (
        60_000_000,
        -5,
    )
    assert step.resolve().policy.stall == 30_000_000, "the next call has the step's again"


def test_a_step_is_looked_at_when_it_may_be_late_or_stalled():
    assert Step(encode, timeout="10s").resolve().first_look == 10_000_000
    assert Step(encode, timeout="10s", stall="1s").resolve().first_look == 2_000_000, "and what was said has a second"
    assert Step(encode, timeout="1s", stall="10s").resolve().first_look == 1_000_000
    assert Step(encode).resolve().policy.timeout == 3_600_000_000, "no step runs for ever"


def test_what_was_learned_is_treated_rule_by_rule_or_all_of_it_alike():
    assert Step(encode).resolve().policy.learned == "observe"
    assert Step(encode, learned="suggest").resolve().policy.learned == "suggest"
    both = Step(encode, learned={"timeout": "enforce", "stall": "suggest"}).resolve().policy
    assert modes_of(both.learned) == Modes("enforce", "suggest")
    one = Step(encode, learned={"timeout": "enforce"}).resolve().policy
    assert modes_of(one.learned) == Modes("enforce", "observe"), "what is not named is observed"
    alike = Step(encode, learned={"timeout": "enforce", "stall": "enforce"}).resolve().policy
    assert alike.learned == "enforce", "as older versions read it, too"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"timout": 3}, "step 'encode': there is no option 'timout'; did you mean 'timeout'"),
        ({"retries": 3}, "there is no option 'retries'; did you mean 'retry'"),
        ({"x": 3}, "there is no option 'x'; there are: idempotent, isolation, learned, limit, local_retries, name,"),
        ({"timeout": 0}, "timeout of step 'encode' must be above zero"),
        ({"timeout": "ten"}, "timeout of step 'encode' must look like"),
        ({"timeout": True}, "timeout of step 'encode' must be"),
        ({"retry": -1}, r"Retry\(times\) must be"),
        ({"retry": True}, r"Retry\(times\) must be"),
        ({"retry": 1.5}, "retry of step 'encode' must be a number or Retry"),
        ({"isolation": "owm"}, "must be 'auto' or 'own', got 'owm'; did you mean 'own'"),
        ({"isolation": 3}, "must be 'auto' or 'own', got 3"),
        ({"stal": "1s"}, "there is no option 'stal'; did you mean 'stall'"),
        ({"stall": 0}, "stall of step 'encode' must be above zero"),
        ({"stall": "soon"}, "stall of step 'encode' must look like"),
        ({"priority": 101}, "priority of step 'encode' must be a number from -100 to 100"),
        ({"priority": True}, "priority of step 'encode' must be a number"),
        ({"learned": "sugest"}, "learned of step 'encode' must be 'observe', 'suggest' or 'enforce', .*mean 'suggest'"),
        ({"learned": {}}, "or one of them for each rule, like {'timeout': 'enforce'}, got {}"),
        ({"learned": {"tiemout": "enforce"}}, "learned of step 'encode' has no rule 'tiemout'; did you mean 'timeout'"),
        ({"learned": {"stall": "enforced"}}, r"learned\['stall'\] of step 'encode' must be .*; did you mean 'enforce'"),
        ({"learned": {"stall": None}}, r"learned\['stall'\] of step 'encode' must be 'observe', 'suggest' or"),
        ({"local_retries": -1}, "local_retries of step 'encode' must be a whole number from 0 to 100"),
        ({"local_retries": 2.0}, "local_retries of step 'encode' must be a whole number"),
        ({"local_retries": 101}, r"for more, or with pauses, use retry=Retry"),
        ({"learned": {"timeout": "enforce", "stall": "ever"}}, r"learned\['stall'\] of step 'encode' must be"),
        ({"idempotent": "no"}, "idempotent of step 'encode' must be True or False, got 'no'"),
        ({"uses": "Stripe!"}, "uses= of step 'encode' must name one dependency, like 'stripe', .* got 'Stripe!'"),
        ({"verify": 3}, r"verify of step 'encode' must be a function of \(result, \*arguments\), got 3"),
        ({"undo": 3}, "undo of step 'encode' must be a step .* got 3; or write @name.undo above it"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options, why):
    with pytest.raises(InvalidOptionError, match=why):
        Step(encode, **options)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"timout": 3}, r"<step 'encode'>\.options: there is no option 'timout'; did you mean 'timeout'"),
        ({"name": "x"}, "there is no option 'name'"),
        ({"timeout": -1}, "timeout of step 'encode' must be above zero"),
        ({"retry": "x"}, "retry of step 'encode' must be"),
        ({"key": ""}, "key of step 'encode' must be text of 1-200 characters"),
        ({"key": "x" * 201}, "key of step 'encode'"),
        ({"key": "a\nb"}, "key of step 'encode'"),
        ({"key": "\ud800"}, "key of step 'encode'"),
        ({"key": 3}, "key of step 'encode'"),
        ({"stall": -1}, "stall of step 'encode' must be above zero"),
        ({"priority": "high"}, "priority of step 'encode' must be"),
        ({"local_retries": 1}, "there is no option 'local_retries'"),
    ],
)
def test_options_of_a_call_are_checked_too(options, why):
    with pytest.raises(InvalidOptionError, match=why):
        ENCODE.options(**options)


def transfer(order: str, cents: int = 0, *, currency: str = "EUR") -> str:
    return f"{order} {cents} {currency}"


def short(order: str) -> None:
    """Take too little."""


def unnamed(result: str, order: str, cents: int) -> None:
    """Take no currency."""


def fitting(*anything: object, **named: object) -> None:
    """Take whatever there is."""


@pytest.mark.parametrize(
    ("option", "function", "called"),
    [
        ("probe", short, "(order, cents, currency)"),
        ("verify", short, "(result, order, cents, currency)"),
        ("verify", unnamed, "(result, order, cents, currency)"),
        ("undo", Step(short), "(result, order, cents, currency)"),
    ],
)
def test_what_could_not_be_called_when_it_is_needed_is_refused_at_import(option: str, function: Any, called: str):
    options: Any = {option: function}
    with pytest.raises(InvalidOptionError) as refused:
        Step(transfer, **options)
    assert f"{option} of step 'transfer' is called with {called}, and cannot be: " in str(refused.value)


@pytest.mark.parametrize("option", ["probe", "verify"])
def test_what_takes_all_that_the_step_does_fits(option: str):
    all_of_it: Any = {option: fitting}
    too_little: Any = {option: short}
    Step(transfer, **all_of_it)
    Step(fitting, **too_little)  # how many there are shows when it is called


def test_an_undo_that_is_written_below_its_step_is_held_against_it_too():
    step = Step(transfer)
    with pytest.raises(InvalidOptionError, match="undo of step 'transfer' is called with"):
        step.undo(short)
    assert step.undone_by is None


async def awaits(result: str, order: str, cents: int, *, currency: str) -> None:
    """Verify in a coroutine."""


def test_coroutine_cannot_verify_a_step_that_runs_in_a_thread():
    with pytest.raises(InvalidOptionError, match="verify of step 'transfer' must be a plain function, as the step is"):
        Step(transfer, verify=awaits)


def test_step_has_one_undo_and_its_app_knows_it():
    app = App()
    step = app.step(transfer)
    undo = step.undo(fitting)
    assert step.undone_by is undo
    assert app.registry.step("fitting") is undo
    with pytest.raises(InvalidOptionError, match="<step 'transfer'> has an undo already: <step 'fitting'>"):
        step.undo(Step(fitting, name="other"))
    assert step.undone_by is undo


def test_probe_must_say_whether_the_attempt_took_effect():
    answer = Step(transfer, probe=fitting).asked_by().signature
    assert answer.encode_result(Done("paid"))[0] == b'"paid"'
    with pytest.raises(NotDoneError, match="did not take effect"):
        answer.encode_result(NotDone())
    with pytest.raises(UnknownError, match="cannot say whether it took effect: the bank is closed"):
        answer.encode_result(Unknown("the bank is closed"))
    with pytest.raises(
        InvalidValueError, match=r"the probe of step 'transfer' must return Done\(result\).* returned bool"
    ):
        answer.encode_result(True)


def test_result_is_shown_without_its_secrets_and_what_cannot_be_read_as_unreadable():
    def login() -> Secret[str]:
        return Secret("hunter22")

    signature = Step(login).signature
    assert signature.shown_result(b'"hunter22"') == b'"hunter22"'  # without keys there are none
    signature.seals = True
    assert b"hunter22" not in signature.shown_result(b'"hunter22"')
    assert b"hunter22" not in signature.shown_result(b'{"no": "hunter22"}')
