"""Deciding: what a person gives as a result, held against the program where it is at hand: before any run is told."""

from collections.abc import Iterable

import msgspec

from watchbill.app.hall import Hall
from watchbill.cli.program import load_app
from watchbill.errors import InvalidOptionError, InvalidValueError
from watchbill.flow.ladder import calls_another
from watchbill.flow.registry import Registry
from watchbill.model.attempt import RowKind
from watchbill.model.policy import decode_policy
from watchbill.model.question import Asked
from watchbill.store.protocol import EVERY


async def check_result(hall: Hall, program: str, id: str, call: str | None, body: bytes) -> None:
    """Refuse a result that does not fit the type of the calls meant; what nobody here can tell, the run says."""
    items = await hall.read(lambda doors: doors.inbox(hall.namespace, EVERY))
    check_fits([one for one in items if _is_meant(one, id, call)], load_app(program).registry, body)


def check_fits(calls: Iterable[Asked], registry: Registry, body: bytes) -> None:
    """Refuse a result that does not fit the step of one of these calls."""
    for name in sorted({one.step for one in calls if not _may_be_another_step(one)} & set(registry.steps)):
        try:
            registry.steps[name].signature.decode_result(body)
        except InvalidValueError as error:
            why = error.__cause__ or error
            raise InvalidOptionError(f"the result does not fit step {name!r}, and no run was told: {why}") from error


def _is_meant(asked: Asked, id: str, call: str | None) -> bool:
    if asked.kind == RowKind.ASK:
        return False
    if call is not None:
        return (asked.run, asked.call) == (id, call)
    return id in (f"{asked.id:x}", "" if asked.incident is None else f"{asked.incident:x}")


def _may_be_another_step(asked: Asked) -> bool:
    """Say whether its ladder has led the call to another step: the type is that of the step that was called."""
    try:
        return any(calls_another(rung) for rung in decode_policy(asked.policy).ladder[: asked.rung])
    except msgspec.DecodeError:
        return True  # written by another version
