"""Interleaving 10: one call, or one workflow, that kills its process every time, among many innocent ones."""

import subprocess

from tests.forked import fork
from tests.house.conftest import Kept

MOST_LIVES = 40


def play(kept: Kept, where: str) -> tuple[int, str]:
    """Start the program again and again until it ends by itself; gives the number of lives and all it said."""
    said = ""
    for life in range(1, MOST_LIVES + 1):
        with fork("tests.house.poison", kept.url, where, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            out, err = process.communicate(timeout=60)
        said += out
        if process.returncode == 0:
            return life, said
        assert process.returncode == 9, err
    raise AssertionError(f"still dying after {MOST_LIVES} lives:\n{said}")


def states(kept: Kept) -> dict[str, int]:
    return dict(kept.ask("SELECT id, status FROM watchbill.run"))


def test_a_poison_step_is_quarantined_and_named_while_everything_else_goes_on(kept: Kept) -> None:
    lives, said = play(kept, "step")
    # Two lives die with it; from then on it dies alone, in a process of its own.
    assert lives <= 4
    assert "held: call 'poison' is quarantined" in said
    assert "status: waiting waiting_for_person" in said
    assert "step 'poison'" in said
    assert [f"poison {n}" in said for n in (1, 2)] == [True, True]
    runs = states(kept)
    assert runs.pop("bad") == 1, "the bad run stays open"
    assert set(runs.values()) == {10}
    rows = kept.ask("SELECT call, state, why, losses FROM watchbill.attempt")
    assert rows == [("poison", 3, "quarantine", 5)], "nobody else was charged for it in the end"


def test_workflow_code_that_kills_its_process_is_quarantined_too(kept: Kept) -> None:
    lives, said = play(kept, "workflow")
    assert lives <= 7
    assert "held: quarantined: three times its process died while its workflow code ran alone" in said
    runs = states(kept)
    assert runs.pop("bad") == 1
    assert set(runs.values()) == {10}
