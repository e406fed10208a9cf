"""A refused turn is divided by runs and schedules: nothing is lost, and nothing is written twice."""

import msgspec

from watchbill.model.attempt import NewAttempt
from watchbill.model.decision import DecisionRow
from watchbill.model.failed import NewFailed
from watchbill.model.run import NewRun, RunChange
from watchbill.model.schedule import ScheduleChange
from watchbill.model.states import AttemptState
from watchbill.scheduler.division import Division, halves
from watchbill.store.protocol import AskedAgain, Turn, TurnFact
from watchbill.store.refused import words_of


def _turn() -> tuple[Turn, dict[int, int], list[int]]:
    turn = Turn(1, {7: 3})
    run_of: dict[int, int] = {}
    tellers: list[int] = []
    for run in (11, 12):
        turn.journal += [(run, seq, 1, "step", 0, 0, 0, None, None, 5, b"1") for seq in (1, 2)]
        row = dict.fromkeys(NewAttempt._fields)
        turn.attempts.append(NewAttempt(**{**row, "id": run * 10, "run": run, "state": AttemptState.READY}))  # type: ignore[arg-type]
        turn.runs.append(RunChange(run, 1, None, 0, None, None))
        turn.decisions.append(DecisionRow(run, "step", 0, 0, "scheduler", b"{}"))
        turn.holds.append((run, True))
        turn.failed.append(NewFailed(run, "step", False, b"{}"))
        turn.facts.append(TurnFact(99, "n", "", "child", "r", "run", b"1"))
        tellers.append(run)
        for n, part in enumerate((turn.facts_done, turn.finals_done, turn.dropped, turn.decided, turn.released)):
            part.append(run * 100 + n)
            run_of[run * 100 + n] = run
        turn.asked_again.append(AskedAgain(run * 100 + 8, 1))
        turn.starts.append(NewRun(run * 100 + 9, "n", "id", "w", 1, b"[]"))
        run_of |= {run * 100 + 8: run, run * 100 + 9: run}
        turn.after[run] = 0
        turn.finals[turn.finals_done[-1]] = 5
    turn.schedules.append(ScheduleChange("n", "nightly", 1, 0, 0, (), ()))
    return turn, run_of, tellers


def test_each_run_and_each_schedule_is_a_part() -> None:
    division = Division(*_turn())
    assert sorted(map(str, division.origins)) == ["11", "12", "nightly"]
    for run in (11, 12):
        part = division.turn([run])
        assert [entry[:2] for entry in part.journal] == [(run, 1), (run, 2)]
        assert [change.num for change in part.runs] == [run]
        assert part.terms == {7: 3}
        assert not part.schedules
        counts = [len(getattr(part, field.name)) for field in msgspec.structs.fields(Turn)[3:]]
        assert 0 not in [n for n, field in zip(counts, msgspec.structs.fields(Turn)[3:], strict=True)
                         if field.name not in ("schedules", "doing")]  # fmt: skip
    assert [change.name for change in division.turn(["nightly"]).schedules] == ["nightly"]


def test_all_parts_together_are_the_turn() -> None:
    turn, run_of, tellers = _turn()
    division = Division(turn, run_of, tellers)
    assert division.turn(division.origins) == turn


def test_halves_have_all_members() -> None:
    assert halves([1, 2, 3]) == ([1], [2, 3])
    assert halves([1, 2]) == ([1], [2])


def test_words_are_those_of_the_innermost_cause_in_one_line_that_every_store_can_hold() -> None:
    error = RuntimeError("turn refused: [rows]")
    error.__cause__ = ValueError("no NUL here: \0, nor \udce9\nDETAIL: a whole row")
    assert words_of(error) == "ValueError: no NUL here: \N{SYMBOL FOR NULL}, nor \\udce9"
    assert words_of(TimeoutError()) == "TimeoutError"
