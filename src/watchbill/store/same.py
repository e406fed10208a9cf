"""Same: whether the run that has an id is the one that was asked for."""

from watchbill.errors import DuplicateRun
from watchbill.model.run import NewRun


def check_same(asked: NewRun, workflow: str, version: int, input: bytes) -> None:
    """Raise DuplicateRun if the run that has the id is other work: of another workflow, version or other arguments."""
    if (workflow, version, input) != (asked.workflow, asked.version, asked.input):
        existing, wanted = f"{workflow!r} version {version}", f"{asked.workflow!r} version {asked.version}"
        raise DuplicateRun(
            asked.id, existing=existing, asked=wanted if wanted != existing else f"{wanted} with other arguments"
        )
