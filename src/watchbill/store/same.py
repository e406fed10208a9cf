"""Same: whether the run that has an id is the one that was asked for."""

from operator import eq

from watchbill.errors import DuplicateRun, IdTakenError
from watchbill.model.run import NewRun
from watchbill.store.protocol import Equal


def check_same(asked: NewRun, workflow: str, version: int, input: bytes, equal: Equal = eq) -> None:
    """Raise DuplicateRun if the run that has the id is other work: of another workflow, version or other arguments."""
    if (workflow, version) != (asked.workflow, asked.version) or not equal(input, asked.input):
        existing, wanted = f"{workflow!r} version {version}", f"{asked.workflow!r} version {asked.version}"
        raise DuplicateRun(
            asked.id, existing=existing, asked=wanted if wanted != existing else f"{wanted} with other arguments"
        )


def taken_number(run: NewRun) -> IdTakenError:
    """Say that the number of a new run belongs to another one."""
    return IdTakenError(f"run number {run.num} is taken: {run.id!r} cannot have it; nothing was written")
