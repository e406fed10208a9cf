"""Every exception of the house.

WatchbillError
├── InvalidOptionError         an option, name, id or duration that cannot be used
├── InvalidValueError          a value that cannot be written as typed JSON, or read back as its type
├── NotInWorkflowError         a workflow asked its loop for I/O, a thread or another process
├── ImpureWorkflowError        the scan found a clock, randomness or I/O in workflow code
├── StoreError                 the store cannot be used; each says which one and what to do
│   ├── StoreUrlError          an address that names no store
│   ├── StoreOwnedError        another living process owns the file (.pid, .address)
│   ├── StoreCorruptError      the file is damaged or is no Watchbill store
│   ├── StoreReadOnlyError     the file or its folder cannot be written
│   ├── StoreReplacedError     the file, its log or its owner file was deleted, moved or replaced while it was served
│   ├── StoreClockError        its newest time is far ahead of this machine's clock (.newest, .wall)
│   ├── StoreNewerError        written by a newer Watchbill
│   ├── StoreOutdatedError     needs `watchbill migrate` before it can be read
│   ├── StoreRegionError       its role has another region than was asked for, or none
│   └── StoreUnreachableError  no answer: it may or may not have happened
│       └── StoreFailingError  the disk refuses the file for now; a process that serves tries again by itself
│           └── StoreFullError no space left for the next commit
├── SealedError                what is stored cannot be opened with the keys that are here
├── RunNotFound                no run has that id
├── DuplicateRun               that id belongs to a run with other work
├── QuestionNotFound           no question with that id is open
├── AlreadyAnswered            somebody else's answer is on its way to the run
├── ItemNotFound               nothing with that id waits for a decision
├── AlreadyDecided             somebody else's decision is on its way (.by)
├── ClaimedByOther             somebody else holds the item (.by)
├── RunInCreationError         another open transaction is creating a run with that id
├── IdTakenError               a number that was drawn for a row belongs to another row: nothing was written
├── AttemptLostError           raised in a step: its attempt is somebody else's now, or has recorded its result
├── RunHeld                    diverged, quarantined or stuck: left open for a person (.reason)
├── RunFailed                  the run ended as a failure (.error, .step, .attempts)
├── RunCancelled               the run was cancelled
├── StepFailed                 a step failed for good; raised inside the workflow
├── Permanent                  raised by a step: trying again would not help
├── Busy                       raised by a step: try again later, at no cost (.retry_after)
└── Ambiguous                  raised by a step: nobody knows whether it took effect
"""

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

__all__ = [
    "AlreadyAnswered",
    "AlreadyDecided",
    "Ambiguous",
    "AttemptLostError",
    "Busy",
    "ClaimedByOther",
    "DuplicateRun",
    "ErrorData",
    "IdTakenError",
    "ImpureWorkflowError",
    "InvalidOptionError",
    "InvalidValueError",
    "ItemNotFound",
    "NotInWorkflowError",
    "Permanent",
    "QuestionNotFound",
    "QuotaExceeded",
    "RunCancelled",
    "RunFailed",
    "RunHeld",
    "RunInCreationError",
    "RunNotFound",
    "SealedError",
    "StepFailed",
    "StoreClockError",
    "StoreCorruptError",
    "StoreError",
    "StoreFailingError",
    "StoreFullError",
    "StoreNewerError",
    "StoreOutdatedError",
    "StoreOwnedError",
    "StoreReadOnlyError",
    "StoreRegionError",
    "StoreReplacedError",
    "StoreUnreachableError",
    "StoreUrlError",
    "WatchbillError",
]


class WatchbillError(Exception):
    """Everything Watchbill raises."""


class InvalidOptionError(WatchbillError, ValueError):
    """An option, name, id or duration cannot be used; the message says which one and what would do."""


class InvalidValueError(WatchbillError, TypeError):
    """A value cannot be written as typed JSON, or read back as its type."""


class NotInWorkflowError(WatchbillError, RuntimeError):
    """A workflow asked for something that only a step may do."""

    def __init__(self, call: str, written: str | None = None) -> None:
        self.call = call
        super().__init__(f"{written or f'asyncio {call}()'} is not possible inside a workflow: put it in a step")


class ImpureWorkflowError(WatchbillError):
    """Workflow code reads a clock, draws randomness or does I/O; each finding has file, line and remedy."""

    def __init__(self, workflow: str, findings: tuple[str, ...]) -> None:
        self.workflow = workflow
        self.findings = findings
        super().__init__(f"workflow {workflow!r} cannot be replayed:\n  " + "\n  ".join(findings))


class StoreError(WatchbillError):
    """The store cannot be used."""


class StoreUrlError(StoreError, ValueError):
    """The address names no store."""

    def __init__(self, url: str, why: str) -> None:
        self.url = url
        super().__init__(
            f"store {url!r}: {why}; use sqlite:///relative.db, sqlite:////absolute.db, sqlite:///:memory:"
            " or postgresql://user:password@host/database"
        )


class StoreOwnedError(StoreError):
    """Another living process owns the store's file; `address` is the socket on which it serves others, if it does."""

    def __init__(self, url: str, pid: int | None, address: str | None = None, why: str = "") -> None:
        self.url = url
        self.pid = pid
        self.address = address
        owner = f"process {pid}" if pid is not None else "another process"
        serves = f" and serves other processes at {address!r}" if address is not None else ""
        why = why or "one process has the rooms of a SQLite store" + (
            " (from others, start and handles go through it, and app.run of what it knows)" if serves else ""
        )
        super().__init__(
            f"store {url!r} is owned by {owner}, which is alive{serves}: {why};"
            " stop it, or give this one a store of its own"
        )


class StoreCorruptError(StoreError):
    """The file is damaged, or is no Watchbill store."""

    def __init__(
        self, url: str, detail: str, remedy: str = "restore a backup, or name another file to begin anew"
    ) -> None:
        self.url = url
        super().__init__(f"store {url!r} cannot be read: {detail}; nothing was changed: {remedy}")


class StoreReadOnlyError(StoreError):
    """The file or its folder cannot be written."""

    def __init__(self, url: str, detail: str, remedy: str = "give this user write access to file and folder") -> None:
        self.url = url
        super().__init__(f"store {url!r} cannot be written: {detail}; {remedy}")


class StoreReplacedError(StoreError):
    """A file of the store was deleted, moved or replaced while this process served it.

    Opening it again in place would serve another file: the process must not go on by itself.
    """

    def __init__(self, url: str, why: str, remedy: str) -> None:
        self.url = url
        super().__init__(
            f"store {url!r} cannot be served any longer: {why}; nothing is acknowledged from now on: {remedy}"
        )


class StoreClockError(StoreError):
    """The newest time in the store is far ahead of this machine's clock: one of the two was or is wrong."""

    def __init__(self, url: str, newest: int, wall: int) -> None:
        self.url = url
        self.newest = newest
        self.wall = wall
        super().__init__(
            f"store {url!r} has times up to {_in_utc(newest)}, and this machine's clock says {_in_utc(wall)}:"
            " nothing was started; if this machine's clock is behind, set it and start again; if it is right, the store"
            f" was once used with a clock that was ahead: run watchbill clock --set-back --store {shlex.quote(url)}"
        )


def _in_utc(at: int) -> str:
    return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at):%Y-%m-%d %H:%M:%S} UTC"


class StoreNewerError(StoreError):
    """The store was written by a newer Watchbill."""

    def __init__(self, url: str, found: int, known: int) -> None:
        self.url = url
        self.found = found
        self.known = known
        super().__init__(
            f"store {url!r} has schema {found}, this Watchbill knows up to {known}: install the newer Watchbill"
        )


class StoreOutdatedError(StoreError):
    """The store must be migrated before it can be read."""

    def __init__(self, url: str, found: int, known: int) -> None:
        self.url = url
        self.found = found
        self.known = known
        super().__init__(f"store {url!r} has schema {found}, this Watchbill needs {known}: run `watchbill migrate`")


class StoreRegionError(StoreError):
    """The role of the database by which the store was opened has other regions than those that are asked for."""

    def __init__(self, url: str, why: str) -> None:
        self.url = url
        super().__init__(f"store {url!r}: {why}")


class StoreUnreachableError(StoreError):
    """No answer came back: the request may or may not have been carried out."""


class StoreFailingError(StoreUnreachableError):
    """The disk refuses the store's file for now. The request may be repeated; a process that serves tries again."""

    def __init__(
        self, url: str, detail: str, remedy: str = "repair the disk", trouble: str = "cannot use its disk"
    ) -> None:
        self.url = url
        super().__init__(
            f"store {url!r} {trouble}: {detail}; what was acknowledged is kept: {remedy},"
            " then try again (a process that serves goes on by itself)"
        )


class StoreFullError(StoreFailingError):
    """There is no space for the next commit."""

    def __init__(self, url: str, detail: str) -> None:
        super().__init__(url, detail, "free some space", "is full")


class SealedError(WatchbillError):
    """What is stored about a run is sealed, and cannot be opened with the keys that are here."""

    def __init__(self, id: str, why: str) -> None:
        self.id = id
        super().__init__(f"what is stored about run {id!r} cannot be read: {why}")


class RunNotFound(WatchbillError, LookupError):
    """No run has that id."""

    def __init__(self, id: str, namespace: str) -> None:
        self.id = id
        self.namespace = namespace
        super().__init__(
            f"there is no run {id!r} in namespace {namespace!r}: `watchbill run list` shows those there are"
        )


class DuplicateRun(WatchbillError):
    """That id belongs to a run of another workflow or with other arguments."""

    def __init__(self, id: str, *, existing: str, asked: str) -> None:
        self.id = id
        self.existing = existing
        self.asked = asked
        super().__init__(
            f"run {id!r} exists already as {existing}, and was asked for as {asked}:"
            " choose another id, or give the same workflow and arguments to get the existing run"
        )


class QuotaExceeded(WatchbillError):
    """A namespace has as many open runs as its quota allows. Nothing was started."""

    def __init__(self, namespace: str, quota: int, asked: int) -> None:
        self.namespace = namespace
        self.quota = quota
        self.asked = asked
        runs = "1 run was" if asked == 1 else f"{asked:,} runs were"
        allowed = "1 open run" if quota == 1 else f"{quota:,} open runs"
        super().__init__(
            f"{runs} not started: the quota of namespace {namespace!r} is {allowed}: start again when runs have ended,"
            f" or raise it: watchbill quota set --runs {quota * 2} --namespace {shlex.quote(namespace)} --reason TEXT"
        )


class IdTakenError(WatchbillError, ValueError):
    """A number that was drawn for a row belongs to another row. Nothing was written: draw again, and repeat."""


class QuestionNotFound(WatchbillError, LookupError):
    """No question with that id is open."""

    def __init__(self, id: str, namespace: str) -> None:
        self.id = id
        self.namespace = namespace
        super().__init__(
            f"no question {id!r} is open in namespace {namespace!r}: it was answered or withdrawn, or was never asked;"
            " `watchbill inbox list` shows those that are"
        )


class AlreadyAnswered(WatchbillError):
    """Somebody has answered, and the first answer counts."""

    def __init__(self, id: str) -> None:
        self.id = id
        super().__init__(
            f"question {id!r} is answered already, and the first answer counts: if it does not fit, the question"
            " stays in the inbox, and can be answered again"
        )


class ItemNotFound(WatchbillError, LookupError):
    """Nothing with that id waits for a decision."""

    def __init__(self, id: str, namespace: str) -> None:
        self.id = id
        self.namespace = namespace
        super().__init__(
            f"nothing waits for a decision as {id!r} in namespace {namespace!r}: no incident and no call has that id,"
            " or it was decided, or its run has ended;"
            " `watchbill incidents list` and `watchbill inbox list` show what does"
        )


class AlreadyDecided(WatchbillError):
    """Somebody has decided, and the first decision counts."""

    def __init__(self, id: str, by: str | None) -> None:
        self.id = id
        self.by = by
        super().__init__(
            f"{by or 'somebody'} has decided about {id!r} already, and that is being done: the first decision counts;"
            " if it does not fit, it waits again, and `watchbill inbox list` says why"
        )


class ClaimedByOther(WatchbillError):
    """Somebody else holds the item."""

    def __init__(self, id: str, by: str, *, or_else: str = "use force (--force)") -> None:
        self.id = id
        self.by = by
        super().__init__(f"{by} holds {id!r}, and looks into it: ask them, wait until their claim ends, or {or_else}")


class RunInCreationError(WatchbillError):
    """Another open transaction is creating a run with that id: nobody knows yet whether it will be there."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = tuple(ids)
        which = f"run {ids[0]!r}" if len(ids) == 1 else f"one of {len(ids)} runs, {ids[0]!r} to {ids[-1]!r}"
        super().__init__(
            f"another open transaction is creating {which}: nothing was done; end that transaction and start again,"
            " or choose another id"
        )


class AttemptLostError(WatchbillError):
    """The attempt's lease is gone: somebody else has the call now; or its result is recorded."""

    def __init__(self, step: str, call: str, why: str = "") -> None:
        self.step = step
        self.call = call
        super().__init__(
            why or f"the lease on {call!r} (step {step!r}) was lost: stop this attempt; its result will not be recorded"
        )


class RunHeld(WatchbillError):
    """The run is open, but nothing moves it until its cause is removed."""

    def __init__(self, id: str, reason: str) -> None:
        self.id = id
        self.reason = reason
        super().__init__(f"run {id!r} is held: {reason}; it stays open and nothing of it is lost")


class ErrorData(msgspec.Struct, frozen=True):
    """An exception as it was stored: never imported by name, never rebuilt as code."""

    type: str
    message: str
    traceback: str


class RunFailed(WatchbillError):
    """The run ended as a failure."""

    def __init__(self, id: str, error: ErrorData, *, step: str | None, attempts: int | None, cause: str) -> None:
        self.id = id
        self.error = error
        self.step = step
        self.attempts = attempts
        self.cause = cause
        where = f" in step {step!r} after {attempts} attempts" if step is not None else ""
        super().__init__(f"run {id!r} failed ({cause}){where}: {error.type}: {error.message}")


class RunUndone(RunFailed):
    """The run failed, and all that it had done was undone."""


class RunUndoFailed(RunFailed):
    """The run failed, and not all that it had done could be undone."""


class RunEnded(WatchbillError):
    """The run has ended: it hears nothing more."""

    def __init__(self, id: str, asked: str) -> None:
        self.id = id
        super().__init__(f"run {id!r} has ended: {asked} is for runs that are open; fork() makes a new one of it")


class RunLive(WatchbillError):
    """The run, or one that it started, has not ended: it cannot be deleted."""

    def __init__(self, id: str) -> None:
        self.id = id
        super().__init__(f"run {id!r}, or a run that it started, has not ended: cancel it, and delete it then")


class RunCancelled(WatchbillError):
    """The run was cancelled."""

    def __init__(self, id: str, reason: str) -> None:
        self.id = id
        self.reason = reason
        super().__init__(f"run {id!r} was cancelled" + (f": {reason}" if reason else ""))


class StepFailed(WatchbillError):
    """A step failed for good: the original exception as data, the same live and in replay."""

    def __init__(
        self,
        *,
        step: str,
        type: str,
        message: str,
        attempts: int,
        cause: str,
        traceback: str = "",
        unsure: bool = False,
    ) -> None:
        self.step = step
        self.type = type
        self.message = message
        self.attempts = attempts
        self.cause = cause
        self.traceback = traceback
        self.unsure = unsure  # it may have taken effect all the same: by its last attempt, or one before
        super().__init__(f"step {step!r} failed ({cause}) after {attempts} attempts: {type}: {message}")


class Permanent(WatchbillError):
    """Raised by a step when trying again would not help."""


class Busy(WatchbillError):
    """Raised by a step when what it needs is busy: `Busy("30s")` tries it again after that time, at no cost."""

    def __init__(self, retry_after: timedelta | float | str, message: str = "") -> None:
        self.retry_after = retry_after
        super().__init__(message or f"busy: again after {retry_after}")


class Ambiguous(WatchbillError):
    """Raised by a step when nobody knows whether it took effect: it is asked about before it is tried again."""
