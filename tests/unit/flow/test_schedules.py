"""The options of a schedule are read when the workflow is defined; what cannot be meant says what to do."""

import re
from datetime import timedelta
from typing import Any

import pytest

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


def test_nobody_gives_a_schedule_arguments():
    with pytest.raises(InvalidOptionError, match=r"without a default cannot be filled \(path, copies\)"):
        Workflow(needy, cron="0 2 * * *")
