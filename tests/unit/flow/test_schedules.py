"""The options of a schedule are read when the workflow is defined; what cannot be meant says what to do."""

import re
from datetime import timedelta
from typing import Any

import pytest

from watchbill.app.app import App
from watchbill.clock import SECOND
from watchbill.errors import InvalidOptionError
from watchbill.flow.workflows import Workflow
from watchbill.model.recurrence import Catchup, Overlap, ScheduleSpec


async def report(copies: int = 1, *also: str, **more: str) -> None: ...


async def needy(path: str, *, copies: int) -> None: ...


def schedule(**options: Any) -> ScheduleSpec | None:
    return Workflow(report, **options).schedule


def test_most_workflows_have_none():
    assert schedule() is None


def test_what_is_written_is_what_is_kept():
    assert schedule(cron=" 0 2  * * * ") == ScheduleSpec(cron="0 2 * * *")
    assert schedule(every="1h30m") == schedule(every=timedelta(minutes=90)) == ScheduleSpec(every=5_400 * SECOND)
    assert schedule(cron="*/5 8-18 * * MON-FRI", tz="Europe/Berlin", overlap="queue", catchup="all") == ScheduleSpec(
        cron="*/5 8-18 * * MON-FRI", tz="Europe/Berlin", overlap=Overlap.QUEUE, catchup=Catchup.ALL
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"cron": "0 2 * *"}, "cron='0 2 * *' must have five fields: minute, hour, day of month"),
        ({"cron": ""}, "cron='' must have five fields"),
        ({"cron": "61 2 * * *"}, "the minute in cron='61 2 * * *' cannot be read"),
        ({"cron": "0 25 * * *"}, "the hour in cron='0 25 * * *' cannot be read"),
        ({"cron": "0 2 * * Funday"}, "the day-of-week in"),
        ({"cron": "0 0 30 2 *"}, "the day-of-month in cron='0 0 30 2 *' cannot be read"),
        ({"cron": "* * * * * *"}, "six fields, and a minute is the finest: leave the seconds out, or use every="),
        ({"cron": "@daily"}, "did you mean '0 0 * * *'?"),
        ({"cron": 5}, "cron= is text of five fields"),
        ({"every": "1 hour"}, "every= must look like '1h30m'"),
        ({"every": 0}, "every= must be above zero"),
        ({"every": "500ms"}, "every= must be a second or more, got '500ms'"),
        ({"cron": "0 2 * * *", "every": "1h"}, "it has cron= and every=, and can have one schedule: leave one out"),
        ({"every": "1h", "tz": "Europe/Berlin"}, "every= counts real time, which has no zone"),
        ({"cron": "0 2 * * *", "tz": "Europe/Berln"}, "no time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?"),
        ({"cron": "0 2 * * *", "tz": "/etc/passwd"}, "there is no time zone '/etc/passwd'"),
        ({"cron": "0 2 * * *", "tz": 3}, "no time zone 3; zones are named like 'Europe/Berlin'"),
        ({"cron": "0 2 * * *", "overlap": "que"}, "overlap= cannot be 'que'; did you mean 'queue'?"),
        ({"cron": "0 2 * * *", "catchup": True}, "catchup= cannot be True; there are: all, last, none"),
        ({"tz": "UTC"}, "tz= says how a schedule runs: give it cron= or every= too"),
        ({"catchup": "all"}, "catchup= says how a schedule runs"),
        ({"every": "1h", "name": "täglich"}, "its name is the beginning of its runs' ids"),
        ({"every": "1h", "name": "x" * 180}, "its name is the beginning of its runs' ids: 1-172 characters"),
        ({"crno": "0 2 * * *"}, "there is no option 'crno'; did you mean 'cron'?"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, complaint):
    with pytest.raises(InvalidOptionError, match=re.escape(complaint)) as refused:
        schedule(**options)
    assert str(refused.value).startswith(f"workflow {options.get('name', 'report')!r}")


def test_schedule_must_fill_all_parameters():
    with pytest.raises(InvalidOptionError, match=r"does not fill all its parameters \(path, copies\)"):
        Workflow(needy, cron="0 2 * * *")
    with pytest.raises(
        InvalidOptionError, match=r"does not fill all its parameters \(copies\): name them in arguments"
    ):
        Workflow(needy, cron="0 2 * * *", arguments={"path": "a"})


def declared(function: Any = needy, **options: Any) -> Workflow[..., Any]:
    """Declare a workflow as the decorator does."""
    return App().workflow(every="1h", **options)(function)


def test_arguments_of_a_schedule_are_written_as_those_of_a_call():
    workflow = declared(arguments={"copies": 3, "path": "a.mov"})
    assert workflow.scheduled_input() == workflow.signature.encode_args(("a.mov",), {"copies": 3})
    assert declared(report).scheduled_input() == declared(report).signature.encode_args((), {})
    more = declared(report, arguments={"copies": 2, "tag": "x"})
    assert more.signature.decode_args(more.scheduled_input()) == ((2,), {"tag": "x"})


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            {"path": "a", "copies": 1, "copy": 2},
            "names 'copy', which is no parameter that can be given by name; there are: copies, path",
        ),
        ({"path": "a", "copies": "three"}, "argument 'copies' of workflow 'needy' must be int"),
        ({"path": 7, "copies": 1}, "argument 'path' of workflow 'needy' must be str, got int"),
        ({"path": "a", "copies": object()}, "argument 'copies' of workflow 'needy'"),
        (["a", 1], "arguments= is a dict of parameter names"),
        ({1: "a"}, "arguments= is a dict of parameter names"),
    ],
)
def test_wrong_arguments_of_a_schedule_are_refused_by_the_decorator(arguments, complaint):
    with pytest.raises(InvalidOptionError, match=re.escape(complaint)):
        declared(arguments=arguments)


def test_arguments_without_a_schedule_are_refused():
    with pytest.raises(InvalidOptionError, match="arguments= says how a schedule runs: give it cron= or every= too"):
        App().workflow(arguments={"path": "a", "copies": 1})(needy)


def test_refused_arguments_leave_the_workflow_unknown():
    app = App()
    with pytest.raises(InvalidOptionError):
        app.workflow(every="1h", arguments={"path": 1, "copies": 1})(needy)
    app.workflow(every="1h", arguments={"path": "a", "copies": 1})(needy)
