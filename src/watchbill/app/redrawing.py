"""Redrawing: runs get other numbers if the store says that theirs belong to other runs."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from watchbill.env import Env
from watchbill.errors import IdTakenError
from watchbill.model.run import NewRun
from watchbill.store.protocol import REDRAWN, ClientStore, Submitted

T = TypeVar("T")


async def submit_redrawn(
    env: Env,
    runs: Sequence[NewRun],
    write: Callable[[Callable[[ClientStore], Awaitable[list[Submitted]]]], Awaitable[T]],
) -> T:
    """Submit runs again, with new numbers: a number of them belongs to another run."""
    redrawn = 0
    while True:
        redrawn += 1
        env.renumber()
        runs = [msgspec.structs.replace(run, num=env.new_id()) for run in runs]
        try:
            return await write(partial(_submit, runs))
        except IdTakenError:
            if redrawn == REDRAWN:
                raise


async def _submit(runs: Sequence[NewRun], client: ClientStore) -> list[Submitted]:
    return await client.submit(runs)
