"""Whoever was forked from a process that has imported everything is a process like any other."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.forked import Forked, fork
from tests.house.commands import is_alive

LONG = 120  # seconds: reached only by a test that fails


def an_obedient(*words: str, folder: Path | None = None, start_new_session: bool = False, **env: str) -> Forked:
    return fork(
        "tests.house.obedient",
        *words,
        env={**os.environ, **env},
        **({"cwd": folder} if folder else {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=start_new_session,
    )


def tell(process: Forked, line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def hear(process: Forked) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_it_has_a_number_a_session_a_folder_an_environment_and_words_of_its_own(tmp_path):
    with an_obedient("a", "b c", folder=tmp_path, start_new_session=True, TOLD="so") as process:
        tell(process, "describe")
        assert hear(process) == f"{process.pid} {process.pid} {process.pid} {tmp_path} so ['a', 'b c']"
        assert process.poll() is None
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("exit 7", 7, "", ""),
        ("raise", 1, "", "ValueError: as I was told by __main__, with watchbill\n"),
        ("end late", 0, "in a thread\nat the end\n", ""),
    ],
)
def test_it_ends_as_an_interpreter_does(line, code, out, err):
    with an_obedient() as process:
        tell(process, line)
        said, complained = process.communicate(LONG)
    assert (process.returncode, said) == (code, out)
    assert complained.endswith(err)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it_and_it_is_a_zombie_until_somebody_asks(sign):
    with an_obedient() as process:
        tell(process, "wait")
        assert hear(process) == "waiting"
        assert is_alive(process.pid)
        os.kill(process.pid, sign)
        assert process.stdout is not None
        assert process.stdout.read() == ""  # it has ended
        assert Path(f"/proc/{process.pid}").exists()
        assert process.wait(LONG) == -sign
        assert not Path(f"/proc/{process.pid}").exists()
        process.send_signal(sign)  # nobody: its number may be another's by now


def test_it_can_be_frozen(tmp_path):
    with an_obedient() as process:
        process.send_signal(signal.SIGSTOP)
        tell(process, "exit 0")
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.send_signal(signal.SIGCONT)
        assert process.wait(LONG) == 0
