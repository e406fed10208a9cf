"""Refused: what a store says of values that it does not take."""

from typing import Final

from watchbill.errors import InvalidValueError

LONGEST_WORDS: Final = 300  # characters


def words_of(error: BaseException) -> str:
    """Give the words with which a store has refused something: the innermost cause, one line, without values."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = str(getattr(error, "message", None) or error).strip()
    line = text.splitlines()[0] if text else ""
    said = f"{type(error).__name__}: {line}" if line else type(error).__name__
    return said[:LONGEST_WORDS].replace("\0", "\N{SYMBOL FOR NULL}").encode(errors="backslashreplace").decode()


def cannot_be_stored(run: str, error: BaseException) -> InvalidValueError:
    """Say which run of a submit the store refuses, and with which words."""
    return InvalidValueError(f"run {run!r} cannot be stored: {words_of(error)}; nothing of this start was written")
