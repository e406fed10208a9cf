"""Logbook: what an attempt has logged and printed: the last of it, kept for whoever asks later why it failed."""

import io
import logging
import sys
from collections import deque
from typing import Final, TextIO

from watchbill.flow.context import Attempt
from watchbill.flow.steps import attempt_here
from watchbill.model.agent import LOG_LIMIT
from watchbill.model.secret import redacted

MOST: Final = LOG_LIMIT  # characters: no more than that fits
_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class Logbook:
    """The last lines of one attempt."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._size = 0
        self._cut = False

    def write(self, text: str) -> None:
        """Add to it; the oldest of it is forgotten for that."""
        text = text[-MOST:]
        self._lines.append(text)
        self._size += len(text)
        while self._size > MOST:
            self._size -= len(self._lines.popleft())
            self._cut = True

    def text(self) -> str:
        """Give what is left of it."""
        return ("...\n" if self._cut else "") + "".join(self._lines)


def log_of(attempt: Attempt) -> bytes | None:
    """Give what an attempt has logged, without its secrets; None when it was silent."""
    logbook = attempt.logbook
    if logbook is None:
        return None
    return redacted(logbook.text(), attempt.hidden).encode(errors="replace")[-LOG_LIMIT:]


def keep_logs() -> None:
    """From now on keep what attempts of this process log and print, beside what becomes of it otherwise."""
    handler = Keeper()
    handler.setFormatter(logging.Formatter(_FORMAT))
    logging.getLogger().addHandler(handler)
    # What a step says about itself is of interest, whatever the program thinks of other loggers.
    steps = logging.getLogger("watchbill.step")
    if steps.level == logging.NOTSET:
        steps.setLevel(logging.INFO)
    sys.stdout, sys.stderr = Tee(sys.stdout), Tee(sys.stderr)


class Keeper(logging.Handler):
    """Writes records into the logbook of the attempt that logs them."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        _write(self.format(record) + "\n")


class Tee(io.TextIOBase):
    """Passes on what is printed, and writes it into the logbook of the attempt that prints it."""

    def __init__(self, beneath: TextIO) -> None:
        self._beneath = beneath

    def write(self, text: str) -> int:
        """Write it twice."""
        _write(text)
        return self._beneath.write(text)

    def flush(self) -> None:
        """Flush what lies beneath."""
        self._beneath.flush()

    def fileno(self) -> int:
        """Give the file beneath: what a step starts writes there."""
        return self._beneath.fileno()

    def isatty(self) -> bool:
        """Say what lies beneath."""
        return self._beneath.isatty()

    def writable(self) -> bool:
        """It is."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of what lies beneath."""
        return self._beneath.encoding


def _write(text: str) -> None:
    attempt = attempt_here.get()
    if isinstance(attempt, Attempt):
        if attempt.logbook is None:
            attempt.logbook = Logbook()
        attempt.logbook.write(text)
