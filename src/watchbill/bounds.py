"""Bounds: how many bytes one process writes, reads or keeps at once. An `Env` carries them to all its components."""

from typing import Final, NamedTuple


class Bounds(NamedTuple):
    """Sizes in bytes. What is larger than a bound by itself goes alone."""

    at_once: int = 32 << 20  # of a turn, a read or a submit: well within the time that a statement has on a slow disk
    of_a_run: int = 8 << 20  # of these for one run, so that small runs never wait for more than some of a large one
    uploaded_from: int = 4 << 20  # a larger result is written before its turn, in chunks
    chunk: int = 1 << 20  # that one transaction of an upload writes: tens of milliseconds on a slow disk
    large: int = 64 << 10  # smaller outcomes do not count: a thousand of them are less than two portions
    kept: int = 32 << 20  # of large outcomes that wait to be written: runs that have some begin no more
    kept_of_a_run: int = 16 << 20  # the same for one run: twice what a turn takes of it
    divided_from: int = 1 << 20  # a turn of so many is divided if the store does not answer to it
    reported: int = 4 << 20  # of a report: the rest is reported after a heartbeat
    unreported: int = 32 << 20  # of outcomes that are to be reported: beyond it nothing more is leased


BOUNDS: Final = Bounds()
