"""Runs programs, each in a fresh process and folder, in rounds: what is compared was measured side by side."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.child import RESULT

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 600  # seconds; the longest program should need one of these ten minutes


@dataclass(frozen=True)
class Outcome:
    """What one program measured, with the fsync probe of the same minute; of trials, what each of them gave."""

    figures: Mapping[str, float]
    trials: Mapping[str, Sequence[float]]

    @property
    def probe_us(self) -> float:
        return self.figures["probe_s"] * 1e6


Round = Mapping[str, Outcome]
Rounds = Sequence[Round]


class ProgramFailedError(Exception):
    """A program ended without figures; its last words are the message."""


def run(program: str, place: Path, *, quick: bool) -> Outcome:
    """Runs one program in a process and a folder of its own."""
    with tempfile.TemporaryDirectory(prefix=f"{program}-", dir=place) as folder:
        command = [sys.executable, "-m", "benchmarks.child", program, folder, *(["--quick"] if quick else [])]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise ProgramFailedError(f"not done after {PATIENCE} s") from error
        result = Path(folder) / RESULT
        if done.returncode or not result.exists():
            raise ProgramFailedError(done.stderr.strip() or f"exit code {done.returncode}, and not a word")
        measured = json.loads(result.read_text())
        trials = {key: value for key, value in measured.items() if isinstance(value, list)}
        return Outcome({key: value for key, value in measured.items() if key not in trials}, trials)
