"""Ladder: what an author wants after the retries: another way, or a person."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, cast

import msgspec

from watchbill.clock import SECOND
from watchbill.errors import InvalidOptionError, InvalidValueError
from watchbill.flow.names import did_you_mean
from watchbill.flow.signatures import Signature
from watchbill.flow.values import Value
from watchbill.model.duration import Duration, to_micros
from watchbill.model.limit import Limit, gate_name
from watchbill.model.policy import Change, Policy, Retry, Rung, policy_of

LONGEST_LADDER: Final = 20  # rungs: they travel with every row of the call
LONGEST_GROUP: Final = 200
LONGEST_VALUE: Final = 60  # characters of an argument, where people read what is different on a rung
OURS: Final = ("step", "needs", "retry")  # what Switch itself takes: no parameter of a step can be meant


class Switchable(Protocol):
    """What a rung needs of a step."""

    name: str
    signature: Signature
    needs: tuple[str, ...]
    limit: Limit | None


class Switch:
    """Another way: other arguments, another step, or other capabilities; with retries of its own."""

    def __init__(
        self,
        *,
        step: Any = None,  # noqa: ANN401 - a Step; that it is one is checked where it can be told
        needs: str | Iterable[str] | Mapping[str, int] | None = None,
        retry: int | Retry | None = None,
        **arguments: Value,
    ) -> None:
        if step is None and needs is None and not arguments:
            raise InvalidOptionError(
                "Switch() changes nothing: give other arguments (codec='safe'), step=other or needs='cpu'; to try the"
                " same way more often, use retry="
            )
        if isinstance(retry, int) and not isinstance(retry, bool):
            retry = Retry(retry)
        if retry is not None and not isinstance(retry, Retry):
            raise InvalidOptionError(f"Switch(retry=) must be a number or Retry(...), got {retry!r}")
        self.step = step
        self.needs = needs
        self.retry = retry
        self.arguments = arguments

    def __repr__(self) -> str:
        given = {"step": self.step, "needs": self.needs, "retry": self.retry, **self.arguments}
        return f"Switch({', '.join(f'{name}={value!r}' for name, value in given.items() if value is not None)})"


class Escalate:
    """A person: the call waits until somebody of that group decides what becomes of it.

    With `within` they have so long: half way they are reminded, and then the next rung comes.
    """

    def __init__(self, to: str = "", *, within: Duration | None = None) -> None:
        if not isinstance(to, str) or len(to) > LONGEST_GROUP or not to.isprintable() or to != to.strip():
            raise InvalidOptionError(
                f"Escalate(to) must name a group in at most {LONGEST_GROUP} letters, got {to!r:.240}"
            )
        self.to = to
        self.within = None if within is None else to_micros(within, what="Escalate(within)", at_least=1)

    def __repr__(self) -> str:
        within = "" if self.within is None else f", within={self.within / SECOND:g}"
        return f"Escalate({self.to!r}{within})"


Way = Switch | Escalate


def check_ladder(then: object, step: Switchable, step_type: type) -> tuple[Way, ...]:
    """Refuse what is no ladder, and rungs whose arguments do not fit."""
    owner = step.signature.owner
    ways = (then,) if isinstance(then, Switch | Escalate) else then
    if not isinstance(ways, list | tuple) or len(ways) > LONGEST_LADDER:
        raise InvalidOptionError(f"then of {owner} must be a list of at most {LONGEST_LADDER} rungs, got {then!r:.200}")
    for way in ways:
        if isinstance(way, Switch):
            _check_switch(way, step, step_type)
        elif not isinstance(way, Escalate):
            raise InvalidOptionError(f"then of {owner} must have Switch(...) and Escalate(...), got {way!r:.200}")
    return tuple(ways)


def _check_switch(way: Switch, step: Switchable, step_type: type) -> None:
    owner = step.signature.owner
    taken = [name for name in OURS if name in step.signature.parameters]
    if taken:
        raise InvalidOptionError(
            f"{owner} has a parameter {taken[0]!r}, and Switch takes {', '.join(OURS)} for itself: give it another name"
        )
    if way.step is not None and not isinstance(way.step, step_type):
        raise InvalidOptionError(f"Switch(step=) in then of {owner} must be a step of this App, got {way.step!r:.200}")
    other = step if way.step is None else cast(Switchable, way.step)
    if other is not step:
        if other.limit is not None and other.limit.key is not None:
            raise InvalidOptionError(
                f"then of {owner} cannot switch to {other.signature.owner}: the key of its limit is not known there;"
                " give it a limit without a key"
            )
        if not other.signature.takes_what(step.signature):
            raise InvalidOptionError(
                f"then of {owner} cannot switch to {other.signature.owner}, which is called with the same arguments:"
                f" it takes {tuple(other.signature.parameters)}, not {tuple(step.signature.parameters)}"
            )
    for name in way.arguments:
        if name not in other.signature.parameters:
            meant = did_you_mean(name, other.signature.parameters)
            raise InvalidOptionError(
                f"Switch in then of {owner}: {other.signature.owner} has no parameter {name!r}{meant}"
            )
    if other.signature.readable:
        rung(way, other, Policy())


def rung(way: Way, step: Switchable, policy: Policy) -> Rung:
    """Give a rung as it travels with a row; `policy` is that of the step which is called there."""
    if isinstance(way, Escalate):
        return Rung(to=way.to, within=way.within)
    try:
        changes = step.signature.changes(way.arguments)
    except InvalidValueError as error:
        raise InvalidOptionError(f"{way!r}: {error}") from error
    if way.retry is not None:
        policy = with_retry(policy, way.retry)
    gate = None if step.limit is None else gate_name(step.name, None)
    return Rung(step=step.name, changes=changes, policy=policy, gate=gate, said=_said(way, step, changes, policy))


def _said(way: Switch, step: Switchable, changes: tuple[Change, ...], policy: Policy) -> str:
    """Say what is different; read as their types, so that what is a Secret does not show."""
    words = [_other_step(step.name)] if way.step is not None else []
    if way.needs is not None:
        words.append(f"needs {', '.join(policy.needs) or 'nothing'}")
    words += [f"{name}={in_short(value)}" for name, value in map(step.signature.read_change, changes)]
    return ", ".join(words)


def _other_step(name: str) -> str:
    return f"step {name!r}"


def calls_another(rung: Rung) -> bool:
    """Say whether a rung calls another step than those before it; of one that was stored, what it says tells."""
    return rung.said.startswith(_other_step(rung.step))


def in_short(value: Value) -> str:
    """Write a value for people: not all of a long one."""
    try:
        text = repr(value)
    except Exception:  # it is the user's own code
        text = f"a {type(value).__qualname__}"
    text = text.encode(errors="backslashreplace").decode()  # half a character can be written nowhere
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def with_retry(policy: Policy, retry: Retry) -> Policy:
    """Give a policy with another budget of retries."""
    other = policy_of(retry, 1, own=False)
    return msgspec.structs.replace(
        policy, retries=other.retries, backoff=other.backoff, factor=other.factor, cap=other.cap, on=other.on,
        never=other.never, origin="r" + policy.origin[1:],
    )  # fmt: skip
