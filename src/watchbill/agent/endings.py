"""Endings: what the end of an attempt tells: how it went, and what that says of its dependency and of this host."""

from typing import Final, NamedTuple

import msgspec

from watchbill.agent.crew import Errand, row_of
from watchbill.agent.membership import Membership
from watchbill.agent.pace import Paces
from watchbill.agent.probation import Probation
from watchbill.agent.tallies import Tallies
from watchbill.clock import Micros
from watchbill.model.agent import Act, Report
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.breaker import has_answered, is_ill, shown_error
from watchbill.model.doings import Work, tells_against
from watchbill.model.doubt import is_in_doubt
from watchbill.model.failure import NOT_BEGUN, Cause, Failure

_encode = msgspec.json.Encoder().encode


class Leased(NamedTuple):
    """Whose an attempt is that was leased, and what its end is compared with."""

    run: int
    call: str
    queue: int
    work: Work | None  # None: a probe, which is no attempt
    again: bool  # one before it had failed


_NOT_LEASED: Final = Leased(0, "", 0, None, False)


class Endings:
    """What is remembered of each leased attempt until it ends, and how its end is told."""

    def __init__(self, membership: Membership, tallies: Tallies, probation: Probation) -> None:
        self._membership = membership
        self._tallies = tallies
        self._probation = probation
        self._paces = Paces()
        self._leased: dict[tuple[int, int], Leased] = {}  # by row and fence

    def begin(self, row: AttemptRow, uses: str, boot: Micros) -> None:
        """Remember whose it is; `uses`: the dependency that it uses, if any."""
        work = None if row.kind == RowKind.PROBE else Work(row.queue, row.step, row.rung)
        self._leased[row.id, row.fence] = Leased(row.run, row.call, row.queue, work, row.failures > 0)
        if uses:
            self._paces.note(uses, boot, again=row.failures > 0)

    def report(self, attempt: Errand, boot: Micros, *, stopped: bool) -> Report:
        """Say how an attempt ended, and what that tells of the dependency that it uses."""
        report, uses, failure = _report(attempt, stopped=stopped), attempt.policy.uses, attempt.failure
        leased = self._leased.pop((report.id, report.fence), _NOT_LEASED)
        self._count(report, attempt, leased, boot)
        if self._probation.is_canary(report.id, report.fence):
            report = self._tried(report, attempt, leased)
        if report.act == Act.DONE:
            report = report._replace(run=leased.run, call=leased.call)
        if not uses or report.act not in (Act.DONE, Act.FAILED):
            return report
        report = report._replace(queue=leased.queue)
        if failure is None or has_answered(failure):
            # With retries too: where those wait that failed before, all may be well by now, and nobody else says it.
            firsts = self._paces.firsts(uses, boot) if leased.again else None
            return report._replace(uses=uses, firsts=firsts, well=failure is not None)
        if not is_ill(failure) or attempt.cancelled:
            return report
        pace, firsts = self._paces.of(uses, boot), self._paces.firsts(uses, boot)
        doubt = not attempt.probes and is_in_doubt(failure, attempt.policy)
        return report._replace(uses=uses, error=shown_error(failure), pace=pace, firsts=firsts, doubt=doubt)

    def forget(self, attempt: Errand) -> None:
        """Forget an attempt: it was reported, or is somebody else's."""
        row = row_of(attempt)
        self._leased.pop((row, attempt.fence), None)
        if self._probation.is_canary(row, attempt.fence):  # taken from us: late, or lost
            self._probation.failed("")

    def _count(self, report: Report, attempt: Errand, leased: Leased, boot: Micros) -> None:
        """Count how it ended, if that may be the host's doing, so that we can be compared with others."""
        if leased.work is None or not self._membership.knows_time:
            return
        at = self._membership.store_time(boot)
        if report.act == Act.DONE:
            self._tallies.done(leased.work, at, again=leased.again)
        elif _is_ours(report, attempt):
            assert attempt.failure is not None  # noqa: S101 - it failed
            self._tallies.failed(leased.work, at, attempt.run, attempt.failure.type, again=leased.again)

    def _tried(self, report: Report, attempt: Errand, leased: Leased) -> Report:
        """Note what came of a canary; one that failed goes back, uncharged, where it may be begun again."""
        if leased.work is None:
            self._probation.tell_nothing()  # a probe that says no has answered
        elif report.act == Act.DONE:
            self._probation.passed()
        elif report.act == Act.DIED or _is_ours(report, attempt):
            self._probation.failed("" if attempt.failure is None else attempt.failure.type)
            if report.act == Act.FAILED and attempt.may_repeat:
                return report._replace(act=Act.HAND_BACK)  # it raised: there is nothing to undo
        else:
            self._probation.tell_nothing()
        return report


def _is_ours(report: Report, attempt: Errand) -> bool:
    """Say whether a failure may be this host's doing."""
    failure = attempt.failure
    return report.act == Act.FAILED and failure is not None and tells_against(failure) and not attempt.cancelled


def _report(attempt: Errand, *, stopped: bool) -> Report:
    """Say how an attempt ended; one that never began, or was ended by our own stop, is handed back, uncharged.

    What had begun and must not simply be begun again is not: nobody knows whether it took effect.
    """
    failure: Failure | None = attempt.failure
    if failure is None:
        return Report(row_of(attempt), attempt.fence, Act.DONE, attempt.body, attempt.log_body)
    if failure.cause is Cause.CANCELLED and (stopped or not attempt.cancelled):
        if failure.type == NOT_BEGUN:
            return Report(row_of(attempt), attempt.fence, Act.HAND_BACK, None, attempt.log_body)
        if not attempt.may_repeat:
            failure = Failure("Stopped", "its agent stopped it, and it may have taken effect", cause=Cause.KILLED)
            return Report(row_of(attempt), attempt.fence, Act.DIED, _encode(failure), attempt.log_body)
        return Report(row_of(attempt), attempt.fence, Act.STOPPED, _encode(failure), attempt.log_body)
    act = Act.DIED if failure.cause in (Cause.KILLED, Cause.STARVED) else Act.FAILED
    return Report(row_of(attempt), attempt.fence, act, _encode(failure), attempt.log_body)
