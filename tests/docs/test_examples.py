"""The scenarios of examples/ play by themselves, with their faults, and end as they say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE = 110


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("provisioning", ["machines: ['vm-1.create-vm.eu']", "left behind: []", "switch: all 2 retries are used up"]),
        ("video", ["fast from 0 %, fast from 47 %, safe from 0 %", "Stalled: no progress", "'chunk-3.safe'"]),
    ],
)
def test_a_scenario_breaks_and_is_cured(scenario: str, said: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WATCHBILL_")}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{scenario}.py")],
        capture_output=True,
        text=True,
        env=environment,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in said:
        assert words in done.stdout
