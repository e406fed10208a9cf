"""Times: how commands write times for people: a time of today needs no date."""

import re

from watchbill.clock import to_datetime
from watchbill.env import SystemEnv


def date_of_today() -> str:
    """Give the date as times have it that are written in full."""
    return f"{to_datetime(SystemEnv().clock.wall()):%Y-%m-%d}"


def without_date(text: str, date: str) -> str:
    """Leave a date out of the times that have it."""
    return re.sub(rf"\b{re.escape(date)} (\d\d:\d\d:\d\d)", r"\1", text)
