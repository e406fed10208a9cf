"""Logbook: what an attempt has logged and printed: the last of it, kept for whoever asks later why it failed."""

import io
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final, TextIO

from watchbill.flow.context import Attempt
from watchbill.flow.logs import NAME
from watchbill.flow.steps import attempt_here
from watchbill.forks import FORKS
from watchbill.model.agent import LOG_LIMIT
from watchbill.model.secret import redacted

MOST: Final = LOG_LIMIT  # characters: no more than that fits
_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_handling: ContextVar[bool] = ContextVar("watchbill_handling", default=False)  # the program's handlers are at it


class Logbook:
    """The last lines of one attempt, whichever of its threads they come from; without the texts that are `hidden`."""

    def __init__(self, hidden: Sequence[str] = ()) -> None:
        self._hidden = hidden
        self._lines: deque[str] = deque()
        self._size = 0
        self._cut = False
        self._writing = threading.Lock()
        FORKS.when_forked(self._forget)

    def _forget(self) -> None:
        self._writing = threading.Lock()  # another thread of the parent may have held the old one

    def write(self, text: str) -> None:
        """Add to it; the oldest of it is forgotten for that."""
        # Before it is cut: half a secret would not be found any more.
        text = redacted(text, self._hidden)
        with self._writing:
            self._cut = self._cut or len(text) > MOST
            text = text[-MOST:]
            if not text:
                return
            self._lines.append(text)
            self._size += len(text)
            while self._size > MOST:
                self._size -= len(self._lines.popleft())
                self._cut = True

    def text(self) -> str:
        """Give what is left of it."""
        with self._writing:
            said = "".join(self._lines)
        # Once more: a secret may have been written in pieces.
        return ("...\n" if self._cut else "") + redacted(said, self._hidden)


def log_of(attempt: Attempt) -> bytes | None:
    """Give what an attempt has logged, without its secrets; None when it was silent."""
    logbook = attempt.logbook
    if logbook is None:
        return None
    text: str = logbook.text()
    return text.encode(errors="replace")[-LOG_LIMIT:]


def keep_prints() -> None:
    """From now on keep what attempts of this process print; before the program is read, which may hold on to stdout."""
    if sys.stdout is not None:
        sys.stdout = Tee(sys.stdout)
    if sys.stderr is not None:
        sys.stderr = Tee(sys.stderr)


def keep_logs() -> Callable[[], None]:
    """From now on keep what attempts of this process log, beside what becomes of it otherwise; gives what ends it.

    Not by a handler: where there is one, the program's own basicConfig() does nothing, Python's handler of last resort
    is off, and whoever configures logging anew removes it. So it stands before all handlers, behind all filters of
    loggers, and the program's logging is as it would be without us.
    """
    formatter = logging.Formatter(_FORMAT)
    before = logging.Logger.callHandlers

    def call_handlers(self: logging.Logger, record: logging.LogRecord) -> None:
        _keep(formatter, record)
        token = _handling.set(True)
        try:
            before(self, record)
        finally:
            _handling.reset(token)

    logging.Logger.callHandlers = call_handlers  # type: ignore[method-assign]
    # What a step says about itself is of interest, whatever the program thinks of other loggers; dictConfig() turns
    # off, unless told otherwise, all that were there before.
    steps = logging.getLogger(NAME)
    steps.disabled = False
    if steps.level == logging.NOTSET:
        steps.setLevel(logging.INFO)

    def end() -> None:
        logging.Logger.callHandlers = before  # type: ignore[method-assign]

    return end


def _keep(formatter: logging.Formatter, record: logging.LogRecord) -> None:
    if not isinstance(attempt_here.get(), Attempt):
        return
    try:
        text = formatter.format(record)
    except Exception as error:  # its arguments do not fit: handlers complain about that, and the step goes on
        text = f"{record.levelname} {record.name}: {record.msg!r} ({type(error).__name__})"
    _write(text + "\n")


class Tee(io.TextIOBase):
    """Passes on what is printed, and writes it into the logbook of the attempt that prints it.

    In everything else it is what lies beneath.
    """

    def __init__(self, beneath: TextIO) -> None:
        self._beneath = beneath

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - buffer, reconfigure, name, mode and others
        return getattr(self._beneath, name)

    def write(self, text: str) -> int:
        """Write it twice; what a handler of logging writes is in the logbook already."""
        if isinstance(text, str) and not _handling.get():
            _write(text)
        return self._beneath.write(text)

    def flush(self) -> None:
        """Flush what lies beneath."""
        if not self._beneath.closed:  # else there is nothing to flush, also when this one is collected
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

    def detach(self) -> Any:  # noqa: ANN401 - as of what lies beneath
        """Take from what lies beneath."""
        return self._beneath.detach()  # type: ignore[attr-defined]

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of what lies beneath."""
        return self._beneath.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """Those of what lies beneath."""
        return self._beneath.errors

    @property
    def newlines(self) -> Any:  # type: ignore[override]  # noqa: ANN401 - as of what lies beneath
        """Those of what lies beneath."""
        return self._beneath.newlines


def _write(text: str) -> None:
    attempt = attempt_here.get()
    if isinstance(attempt, Attempt):
        if attempt.logbook is None:
            # Two threads may come here at once: one of the two books stays, and both write into that.
            vars(attempt).setdefault("logbook", Logbook(attempt.hidden))
        attempt.logbook.write(text)
