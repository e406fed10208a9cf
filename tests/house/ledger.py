"""The side-effect ledger: a process of its own that is never killed, and writes down what steps really did.

`python ledger.py SOCKET FILE` appends every datagram as one line; it says `ready` when it listens.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Line(NamedTuple):
    """One thing that happened."""

    what: str  # BEGIN, EFFECT, END, ACK
    run: str
    call: str
    fence: int
    number: int
    pid: int
    host: int  # its parent


def record(address: str, what: str, run: str, call: str = "", fence: int = 0, number: int = 0) -> None:
    """Tell the ledger; when this returns, it will be written."""
    line = json.dumps([what, run, call, fence, number, os.getpid(), os.getppid()])
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
        wire.sendto(line.encode(), address)


class Ledger:
    """The ledger process, from the test's side."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "ledger.sock")
        self._file = folder / "ledger.jsonl"
        self._process = subprocess.Popen(
            [sys.executable, __file__, self.address, str(self._file)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def lines(self) -> list[Line]:
        """Give everything written so far."""
        return [Line(*json.loads(line)) for line in self._file.read_text().splitlines()]

    def close(self) -> None:
        """End it, after everything sent was written."""
        record(self.address, "CLOSE", "")
        self._process.wait(10)
        self._process.stdout.close() if self._process.stdout is not None else None


def main(address: str, file: str) -> None:
    """Append until told to close."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire, open(file, "ab", buffering=0) as ledger:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 * 1024 * 1024)
        wire.bind(address)
        print("ready", flush=True)
        while True:
            line = wire.recv(65_536)
            if b'"CLOSE"' in line:
                return
            ledger.write(line + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
