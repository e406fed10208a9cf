"""Words: times, durations and progress as people say them."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from watchbill.model.attempt import Progress, how_far


def span(begin: datetime, end: datetime) -> str:
    """Give a time in the two units that matter, rounded down: what took 59.99 s did not take 60."""
    took = max(end - begin, timedelta())
    minutes, seconds = divmod(took.days * 86_400 + took.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d {hours:02}h"
    if hours:
        return f"{hours}h {minutes:02}m"
    if minutes:
        return f"{minutes}m {seconds:02}s"
    if seconds:
        return f"{seconds}.{took.microseconds // 100_000}s"
    return f"{took.microseconds // 1_000}ms"


def moment(at: datetime) -> str:
    """Give a time to the second, in UTC."""
    return f"{at:%Y-%m-%d %H:%M:%S}Z"


def told_of(cause: str, note: str, rejected: Sequence[str], outcome: str) -> str:
    """Say all about something that happened: why, what was not chosen instead, and what became of it."""
    said = [": ".join([part for part in (cause, note) if part])]
    if rejected:
        said.append(f"(not {'; not '.join(rejected)})")
    if outcome:
        said.append(f"-> {outcome}")
    return " ".join([part for part in said if part])


def said_of(progress: Progress) -> str:
    """Say how far a step is."""
    far = how_far(progress)
    return f"{far}: {progress.note}" if progress.note else far
