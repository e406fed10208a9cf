"""docs/overhead.md says what Watchbill changes in the interpreter of its user."""

import gc
import sys
from pathlib import Path

from tests.forked import ROOT
from watchbill import App

PAGE = (ROOT / "docs" / "overhead.md").read_text()


async def test_settings_of_the_interpreter_are_as_the_page_says(tmp_path: Path) -> None:
    assert "at most 0.5 ms" in PAGE
    assert "at least 20,000" in PAGE
    before = sys.getswitchinterval(), gc.get_threshold()
    apps = [App(f"sqlite:///{tmp_path}/{n}.db") for n in range(2)]
    async with apps[0].rooms():
        assert sys.getswitchinterval() <= 0.0005
        assert gc.get_threshold()[0] >= 20_000
        second = apps[1].rooms()
        await second.__aenter__()
    assert sys.getswitchinterval() <= 0.0005, "another App still has its components open"
    await second.__aexit__(None, None, None)
    assert (sys.getswitchinterval(), gc.get_threshold()) == before
