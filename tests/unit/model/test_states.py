"""THE table: what it promises about itself."""

from watchbill.model.states import (
    ATTEMPT_MOVES,
    RUN_MOVES,
    AttemptState,
    Room,
    RunState,
    run_may_move,
    run_sources,
)

TERMINAL = [state for state in RunState if state.terminal]
LIVE = [state for state in RunState if not state.terminal]


def test_nothing_leaves_a_terminal_state() -> None:
    assert not [move for move in RUN_MOVES if move.before is not None and move.before.terminal]
    assert not any(run_may_move(before, after) for before in TERMINAL for after in RunState)


def test_every_state_can_be_reached_and_every_live_one_can_be_left() -> None:
    assert {move.after for move in RUN_MOVES} == set(RunState)
    assert {move.before for move in RUN_MOVES if move.before is not None} == set(LIVE)


def test_from_every_live_state_a_run_can_end() -> None:
    reached = set(TERMINAL)
    while more := {move.before for move in RUN_MOVES if move.after in reached and move.before is not None} - reached:
        reached |= more
    assert reached == set(RunState)


def test_a_turn_may_pass_through_running() -> None:
    assert run_may_move(RunState.SCHEDULED, RunState.COMPLETED)
    assert run_may_move(RunState.WAITING, RunState.FAILED)
    assert run_may_move(RunState.DIVERGED, RunState.CANCELLED)
    assert not run_may_move(RunState.RUNNING, RunState.SCHEDULED)
    assert not run_may_move(RunState.WAITING, RunState.SCHEDULED)


def test_a_live_state_may_be_written_again_and_a_terminal_one_may_not() -> None:
    for state in RunState:
        assert (state in run_sources(state)) is not state.terminal


def test_only_clients_insert_runs_and_only_schedulers_move_them() -> None:
    for run_move in RUN_MOVES:
        assert run_move.owner is (Room.CLIENT if run_move.before is None else Room.SCHEDULER)


def test_only_schedulers_insert_and_delete_rows() -> None:
    for move in ATTEMPT_MOVES:
        if move.before is None or move.after is None:
            assert move.owner is Room.SCHEDULER


def test_a_running_row_is_never_deleted_nor_one_that_nobody_has_judged() -> None:
    deleted = {move.before for move in ATTEMPT_MOVES if move.after is None}
    assert deleted == set(AttemptState) - {AttemptState.RUNNING, AttemptState.FAILED}


def test_what_is_final_only_goes_into_the_journal() -> None:
    for state in (AttemptState.DONE, AttemptState.GAVE_UP):
        assert [move.after for move in ATTEMPT_MOVES if move.before is state] == [None]


def test_words_are_what_users_read() -> None:
    assert [state.word for state in (RunState.SCHEDULED, RunState.UNDO_FAILED)] == ["scheduled", "undo_failed"]
