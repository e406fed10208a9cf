"""A workflow is an async function with options; all else is refused at import, and says what to do."""

import functools
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from watchbill.clock import SECOND
from watchbill.errors import InvalidOptionError
from watchbill.flow.scan import scan
from watchbill.flow.steps import Step
from watchbill.flow.workflows import START_KEYWORDS, Workflow
from watchbill.model.policy import Retry


async def release(path: str, copies: int = 1) -> list[str]:
    """Release a film."""
    return [path] * copies


async def test_outside_a_workflow_it_simply_runs_the_function():
    assert await Workflow(release)("a", copies=2) == ["a", "a"]


def test_it_looks_like_its_function():
    workflow = Workflow(release)
    assert workflow.plain is release
    assert workflow.name == workflow.__name__ == "release"  # type: ignore[attr-defined]
    assert workflow.__doc__ == "Release a film."
    assert workflow.version == 1
    assert repr(workflow) == "<workflow 'release'>"
    assert workflow.signature.encode_args(("a",), {}) == b'["a",1]'
    assert workflow.signature.owner == "workflow 'release'"


def test_a_name_may_be_given():
    assert Workflow(release, name="film-release").name == "film-release"


def sync_function() -> None: ...


async def async_generator() -> Any:
    yield 1


class SomeClass:
    async def method(self) -> None: ...


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (sync_function, "workflow 'sync_function' must be an `async def`"),
        (async_generator, "it is a generator"),
        (SomeClass, "it is a class"),
        (SomeClass.method, "it is a method"),
        (3, "it cannot be called"),
        (functools.partial(release, "a"), "has no name of its own"),
        (Workflow(release), "it is one already"),
        (Step(sync_function), "it is one already"),
    ],
)
def test_what_cannot_be_a_workflow_is_refused(function, why):
    with pytest.raises(InvalidOptionError, match=why):
        Workflow(function)


@pytest.mark.parametrize("name", sorted(START_KEYWORDS))
def test_parameters_named_like_an_option_of_start_are_refused(name):
    async def workflow(x: int, **more: int) -> None: ...

    workflow.__signature__ = workflow_signature(name)  # type: ignore[attr-defined]
    with pytest.raises(InvalidOptionError, match=rf"workflow 'workflow' has a parameter '{name}'.*call it something"):
        Workflow(workflow)


def workflow_signature(name: str) -> Any:
    import inspect

    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)])


@pytest.mark.parametrize("region", ["", "e u", "x" * 101, 3, "eu\n"])
def test_a_region_is_a_name(region):
    with pytest.raises(InvalidOptionError, match="region of workflow 'release' is a name of 1-100 characters"):
        Workflow(release, region=region)
    assert Workflow(release, region="eu").region == "eu"
    assert Workflow(release).region == ""


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            {"on_failure": "undoo"},
            "on_failure of workflow 'release' must be 'undo' or 'keep', got 'undoo'; did you mean",
        ),
        ({"notify": 3}, "notify of workflow 'release' must be an http or https URL with a host, got int"),
        ({"notify": "ftp://host/x"}, "must be an http or https URL with a host, got a text of 12 characters"),
        ({"notify": "https://"}, "must be an http or https URL with a host, got a text of 8 characters"),
        ({"version": 0}, "version of workflow 'release' must be a whole number from 1 to"),
        ({"version": True}, "version of workflow 'release' must be a whole number from 1 to .*, got True"),
        ({"deadline": datetime(2027, 1, 1)}, "deadline of workflow 'release' must have a time zone"),
        ({"deadline": 0}, "deadline of workflow 'release' must be above zero"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options, why):
    with pytest.raises(InvalidOptionError, match=why):
        Workflow(release, **options)


def test_deadline_is_a_time_or_a_span_from_the_start():
    assert Workflow(release, deadline=datetime(1970, 1, 2, tzinfo=UTC)).deadline == (86_400 * SECOND, None)
    assert Workflow(release, deadline="1h").deadline == (None, 3_600 * SECOND)
    assert Workflow(release).deadline == (None, None)


def test_address_to_notify_is_kept_as_it_is():
    assert Workflow(release, notify="https://host/x?key=1").notify == "https://host/x?key=1"
    assert Workflow(release).notify is None


def test_an_unknown_option_is_answered_with_what_was_probably_meant():
    with pytest.raises(InvalidOptionError, match="there is no option 'retries'; did you mean 'retry'"):
        Workflow(release, retries=3)  # type: ignore[call-arg]


def test_defaults_for_its_steps_are_kept_and_checked():
    defaults = Workflow(release, retry=5, timeout="10m").defaults
    assert defaults.retry == Retry(5)
    resolved = Step(sync_function).resolve(defaults)
    assert resolved.policy.timeout == 600 * SECOND
    assert resolved.policy.retries == 5
    with pytest.raises(InvalidOptionError, match="timeout of workflow 'release' must be above zero"):
        Workflow(release, timeout=0)
    with pytest.raises(InvalidOptionError, match=r"Retry\(times\)"):
        Workflow(release, retry=-1)
    with pytest.raises(InvalidOptionError, match="retry of workflow 'release' must be a number or Retry"):
        Workflow(release, retry="3")  # type: ignore[arg-type]


async def tells_time() -> float:
    return time.time()


def test_its_code_is_scanned_once_and_only_when_asked():
    workflow = Workflow(tells_time)
    assert "time.time reads a clock" in scan(workflow.plain, allow=workflow.allow).errors[0]


def test_what_is_allowed_passes_the_scan():
    assert scan(tells_time, allow=Workflow(tells_time, allow=["time.time"]).allow).errors == ()
    assert scan(tells_time, allow=Workflow(tells_time, allow=("time.*",)).allow).errors == ()


@pytest.mark.parametrize(
    ("allow", "why"),
    [
        ("time.time", "must be a list of names"),
        ([3], "must be a list of names"),
        (["time.tme"], "'time.tme' is nothing that would be refused; did you mean 'time.time'?"),
        (["mine"], "'mine' is nothing that would be refused"),
    ],
)
def test_an_allowance_for_nothing_is_refused(allow, why):
    with pytest.raises(InvalidOptionError, match=why):
        Workflow(release, allow=allow)
