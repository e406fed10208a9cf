"""Names that authors give: which ones can be used, and what was probably meant by the others."""

import re
from collections.abc import Collection, Iterable
from typing import Final

from watchbill.errors import InvalidOptionError

LONGEST_NAME: Final = 200  # characters: names are part of keys, which people read and every journal entry carries
_NAME: Final = r"[\w.:-]+"  # patterns are compiled when they are first needed: importing us costs less
CLOSE: Final = 0.65  # at 0.6, which is the default of difflib, gpu-9 is like cpu-1
_NUMBERED: Final = r".*\.\d+"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Give the end of an error message: what was probably meant, else what there is."""
    import difflib  # only for the error message

    choices = sorted(known)
    if close := difflib.get_close_matches(str(name), choices, cutoff=CLOSE):
        # Of those that are alike the one that begins alike: people misspell the end of a word, not its beginning.
        meant = next((choice for choice in close if choice[:1] == str(name)[:1]), close[0])
        return f"; did you mean {meant!r}?"
    return f"; there are: {', '.join(choices)}" if choices else ""


def check_options(what: str, given: Iterable[str], *, known: Collection[str]) -> None:
    """Refuse options that nobody knows."""
    for name in given:
        if name not in known:
            raise InvalidOptionError(f"{what}: there is no option {name!r}{did_you_mean(name, known)}")


def name_of(function: object, given: object, what: str) -> str:
    """Give the name a step or workflow goes by: the one that was asked for, else its function's."""
    name = getattr(function, "__name__", None) if given is None else given
    if given is None and name in (None, "<lambda>"):
        raise InvalidOptionError(f"{function!r} has no name of its own to be known by as a {what}: give it name=...")
    if not isinstance(name, str) or not re.fullmatch(_NAME, name) or len(name) > LONGEST_NAME:
        raise InvalidOptionError(
            f"the name of a {what} has 1-{LONGEST_NAME} letters, digits and _ . : -, got {name!r:.200}: give it name="
        )
    if re.fullmatch(_NUMBERED, name):
        raise InvalidOptionError(
            f"the name of a {what} cannot end in a dot and a number, got {name!r}: that is how second calls are called"
        )
    return name
