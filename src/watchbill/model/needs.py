"""Needs: what a step asks for and an agent has: capabilities by name, some of them with an amount.

They are written the same way everywhere: `gpu` is needed or had, and nothing is taken of it; of `gpu=2` two are needed,
and taken while the attempt runs, or had.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from watchbill.errors import InvalidOptionError

Needs = str | Iterable[str] | Mapping[str, int] | None

MOST: Final = 1_000_000_000  # of anything: an amount is a count, not a number of bytes

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}\Z")
_HOW: Final = "write 'gpu', 'gpu=2', ['gpu', 'eu'] or {'gpu': 1}"


def parse_needs(value: Needs) -> dict[str, int]:
    """Read needs as users and the store write them; an amount of 0 stands for a name without one."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {_name(name): _amount(name, amount) for name, amount in value.items()}
    needs: dict[str, int] = {}
    for part in _parts(value):
        name, amount = _read(part)
        if needs.setdefault(name, amount) != amount:
            raise InvalidOptionError(f"needs= names {name!r} twice, with different amounts: name it once")
    return needs


def is_name(name: object) -> bool:
    """Say whether something can be the name of a capability, or of a dependency."""
    return isinstance(name, str) and _NAME.match(name) is not None


def written(needs: Mapping[str, int]) -> tuple[str, ...]:
    """Write needs as they are stored: sorted, so that the same needs are the same words."""
    return tuple(sorted(f"{name}={amount}" if amount else name for name, amount in needs.items()))


def meets(have: Mapping[str, int], asked: Mapping[str, int]) -> bool:
    """Say whether one who has this can do what asks for that, if nothing is taken yet."""
    return all(name in have and have[name] >= amount for name, amount in asked.items())


def nobody_else(asked: Sequence[str], others: Iterable[Sequence[str]]) -> bool:
    """Say whether none of these others, of whom it is said what they have, can do what asks for that."""
    wanted = parse_needs(asked)
    return not any(meets(parse_needs(have), wanted) for have in others)


def fits(free: Mapping[str, int], asked: Mapping[str, int]) -> int | None:
    """Say how many attempts that ask for this fit into what is free; None: any number."""
    if any(name not in free for name in asked):
        return 0
    return min([free[name] // amount for name, amount in asked.items() if amount], default=None)


def free_amounts(have: Mapping[str, int], taken: Iterable[Sequence[str]]) -> dict[str, int]:
    """Give what is left of each amount while these needs are met."""
    free = dict(have)
    for needs in taken:
        for name, amount in parse_needs(needs).items():
            if name in free:
                free[name] = max(0, free[name] - amount)
    return free


def _parts(value: str | Iterable[str]) -> Iterable[str]:
    if isinstance(value, str):
        return value.split(",") if value.strip() else ()
    if not isinstance(value, Iterable):
        raise InvalidOptionError(f"needs= cannot be {value!r}: {_HOW}")
    return value


def _read(part: str) -> tuple[str, int]:
    if not isinstance(part, str):
        raise InvalidOptionError(f"needs= has {part!r}, which is no name: {_HOW}")
    name, equals, amount = part.strip().partition("=")
    if not equals:
        return _name(name), 0
    if not re.fullmatch(r"[1-9][0-9]{0,9}", amount.strip()):
        raise InvalidOptionError(f"needs= has {part.strip()!r}: an amount is a number from 1 on, as in '{name}=1'")
    return _name(name.strip()), _amount(name, int(amount))


def _name(name: str) -> str:
    if is_name(name):
        return name
    raise InvalidOptionError(
        f"needs= has {name!r}: a capability has up to 63 of a-z, 0-9, '.', '_' and '-', and begins with a letter or a"
        f" digit{_suggestion(name)}"
    )


def _suggestion(name: str) -> str:
    if not isinstance(name, str):
        return f"; {_HOW}"
    likely = re.sub(r"[^a-z0-9._-]+", "-", name.strip().lower()).strip("-._")[:63]
    return f"; did you mean {likely!r}?" if likely else f"; {_HOW}"


def _amount(name: str, amount: int) -> int:
    if type(amount) is int and 0 <= amount <= MOST:
        return amount
    raise InvalidOptionError(f"needs= asks for {amount!r} of {name!r}: an amount is a whole number from 0 to {MOST:,}")
