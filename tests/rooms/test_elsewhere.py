"""The process elsewhere: it replays what it can read, and whatever happens to it is no failure of the test."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from watchbill.flow.workflows import Workflow
from watchbill.model.call import JournalEntry, Kind, Outcome
from watchbill.model.run import NewRun, as_inserted
from watchbill.testing.elsewhere import Elsewhere

PROGRAM = """
import os
from watchbill import App

app = App()

@app.workflow
async def plain() -> int:
    return 1

@app.workflow
async def hashed() -> int:
    return hash("a word")

@app.workflow
async def elsewhere() -> str:
    return "here" if "WATCHBILL_TEST_HERE" in os.environ else "there"
"""
DEADLY = PROGRAM + "\nif 'WATCHBILL_TEST_HERE' not in os.environ:\n    os._exit(3)\n"


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    elsewhere = Elsewhere()
    yield elsewhere
    elsewhere.close()


ENDED_RUN = msgspec.structs.replace(as_inserted(NewRun(1, "default", "r", "w", 1, b"[]"), 1, 1), begun_at=1)


def ended_with(result: bytes) -> list[JournalEntry]:
    return [JournalEntry(1, 1, Kind.END, "", 0, 0, Outcome.OK, None, None, 1, result)]


def written(folder: Path, name: str, program: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Workflow[..., object]]:
    (folder / f"{name}.py").write_text(program)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    with monkeypatch.context() as here:
        here.setenv("WATCHBILL_TEST_HERE", "1")
        return {k: v for k, v in vars(import_module(name)).items() if isinstance(v, Workflow)}


def test_what_does_the_same_there_is_no_difference(
    elsewhere: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flows = written(tmp_path, "elsewhere_plain", PROGRAM, monkeypatch)
    assert elsewhere.recheck(flows["plain"], ENDED_RUN, ended_with(b"1")) is None


def test_what_depends_on_the_hash_seed_is_one(
    elsewhere: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flows = written(tmp_path, "elsewhere_hashed", PROGRAM, monkeypatch)
    difference = elsewhere.recheck(flows["hashed"], ENDED_RUN, ended_with(b"7"))
    assert difference is not None
    assert difference.recorded == "the result 7"


def test_what_differs_under_every_seed_alike_is_none(
    elsewhere: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flows = written(tmp_path, "elsewhere_patched", PROGRAM, monkeypatch)
    assert elsewhere.recheck(flows["elsewhere"], ENDED_RUN, ended_with(b'"here"')) is None


def test_a_program_that_ends_the_process_is_not_replayed(
    elsewhere: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flows = written(tmp_path, "elsewhere_deadly", DEADLY, monkeypatch)
    assert elsewhere.recheck(flows["plain"], ENDED_RUN, ended_with(b"2")) is None
    others = written(tmp_path, "elsewhere_after", PROGRAM, monkeypatch)
    assert elsewhere.recheck(others["hashed"], ENDED_RUN, ended_with(b"7")) is not None


def test_a_workflow_made_inside_a_function_is_not_replayed(elsewhere: Elsewhere) -> None:
    async def local() -> int:
        return 2

    assert elsewhere.recheck(Workflow(local), ENDED_RUN, ended_with(b"1")) is None
