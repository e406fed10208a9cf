"""Any row at any moment: every symptom ends in a verdict of the table, and nothing is cured without evidence."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.supervisor.rows import a_row
from tests.unit.supervisor.test_ladder import FAILURES, POLICIES
from watchbill.clock import SECOND, Micros
from watchbill.model.attempt import AttemptRow, Mark, RowKind
from watchbill.model.decision import Decision
from watchbill.model.failure import Doubt, Failure
from watchbill.model.lost import Dead, Found
from watchbill.model.parked import BACKOFF, DOUBT, ESCALATE, QUARANTINE, SETTLE
from watchbill.model.policy import QUARANTINE_AT, SEEN_WITHIN, Policy
from watchbill.model.states import ATTEMPT_MOVES, AttemptState, Room
from watchbill.model.symptom import AgentDead, Late, Stalled
from watchbill.model.verdict import LetEnd, LookAgain, MarkFailed
from watchbill.supervisor.diagnose import diagnose
from watchbill.supervisor.judge import judge
from watchbill.supervisor.judgement import judgement

NOW: Micros = 1_800_000_000 * SECOND
TABLE = {(move.before, move.after) for move in ATTEMPT_MOVES if move.owner is Room.SUPERVISOR}
ago = st.integers(0, 20_000 * SECOND)
MARKS = st.builds(
    Mark,
    done=st.floats(0, 100),
    extended=st.sampled_from([0, 0, 3_600 * SECOND]),
    quiet_until=st.one_of(st.none(), st.none(), ago.map(lambda span: NOW - span + 600 * SECOND)),
)
WHYS = [None, BACKOFF, "canary", ESCALATE, QUARANTINE]
DOUBTS = st.builds(Doubt, failure=FAILURES, asked=st.integers(0, 4), unwanted=st.booleans())


@st.composite
def rows(draw: st.DrawFn, *states: AttemptState) -> AttemptRow:
    policy = draw(POLICIES)
    stall = draw(st.sampled_from([None, None, 30 * SECOND, 600 * SECOND]))
    policy = msgspec.structs.replace(policy, stall=stall, own=draw(st.booleans()))
    failure: Failure = draw(FAILURES)
    kind = draw(st.sampled_from([RowKind.STEP, RowKind.STEP, RowKind.PROBE]))
    doubt = draw(DOUBTS) if kind is RowKind.PROBE else draw(st.one_of(st.none(), DOUBTS))
    started = draw(ago)
    mark = draw(st.one_of(st.none(), MARKS))
    return a_row(
        state=draw(st.sampled_from(states)),
        failure=failure,
        failures=draw(st.integers(0, 6)),
        losses=draw(st.integers(0, QUARANTINE_AT)),
        rung=draw(st.integers(0, len(policy.ladder))),
        cancel=draw(st.booleans()),
        why=draw(st.sampled_from(WHYS if doubt is None else [SETTLE, DOUBT])),
        started_at=NOW - started,
        watch_at=draw(st.one_of(st.none(), ago.map(lambda span: NOW - span + 3_600 * SECOND))),
        progress_at=None if mark is None else NOW - draw(st.integers(0, started)),
        progress=None if mark is None else msgspec.json.encode(mark),
        policy=msgspec.json.encode(policy),
        kind=kind,
        doubt=None if doubt is None else msgspec.json.encode(doubt),
    )


@given(rows(*AttemptState), st.booleans(), st.floats(0, 0.999))
def test_every_symptom_ends_in_a_verdict_of_the_table_with_its_evidence(
    row: AttemptRow, orphaned: bool, chance: float
) -> None:
    symptom = diagnose(row, NOW, dead=Dead(row.agent or 0, "a", Found.DEAD) if orphaned else None)
    if symptom is None:
        return  # the next test says when that may be
    policy = msgspec.json.decode(row.policy, type=Policy)
    verdict = judge(symptom, row, policy, chance)
    change = judgement(row, symptom, verdict)
    assert (change.id, change.fence, change.state) == (row.id, row.fence, row.state), "it repeats what it has seen"
    if isinstance(verdict, LookAgain | LetEnd):
        assert (change.after, change.failures, change.losses) == (row.state, 0, 0)
    else:
        assert (row.state, change.after) in TABLE
    if isinstance(verdict, LookAgain):
        assert change.body is None  # nothing was learned of these, so none of them is slow
    else:
        assert change.body is not None
        reason = msgspec.json.decode(change.body, type=Decision)
        assert reason.rule
        assert reason.chosen


@given(rows(AttemptState.RUNNING), st.booleans())
def test_what_runs_is_called_ended_only_with_a_dead_agent_or_a_limit_that_has_passed(
    row: AttemptRow, orphaned: bool
) -> None:
    symptom = diagnose(row, NOW, dead=Dead(row.agent or 0, "a", Found.DEAD) if orphaned else None)
    if symptom is None:
        assert not orphaned
        assert row.watch_at is None or row.watch_at > NOW
        return
    policy = msgspec.json.decode(row.policy, type=Policy)
    verdict = judge(symptom, row, policy, 0.5)
    if not isinstance(verdict, MarkFailed):
        return
    assert row.started_at is not None
    mark = None if row.progress is None else msgspec.json.decode(row.progress, type=Mark)
    match symptom:
        case AgentDead(agent=agent):
            assert orphaned
            assert agent == row.agent
            assert judgement(row, symptom, verdict).dead_agent == agent, "looked at again by the store"
        case Late():
            assert row.started_at + policy.timeout + (mark.extended if mark else 0) <= NOW
            assert judgement(row, symptom, verdict).unmoved, "if it has said that it needs longer, it has it"
        case Stalled():
            assert policy.stall is not None
            assert (row.progress_at or row.started_at) + policy.stall + SEEN_WITHIN <= NOW
            assert mark is None or mark.quiet_until is None or mark.quiet_until <= NOW
            assert judgement(row, symptom, verdict).unmoved
        case _:
            raise AssertionError(f"{symptom} is no evidence that it has ended")
