"""Fitting: holds a program against a store's runs, for `watchbill check`."""

import msgspec

from watchbill.app.fitness import Misfit, misfit_of, misfits_of_source, records
from watchbill.cli.place import Where
from watchbill.cli.program import load_app
from watchbill.cli.reading import damage_told, read
from watchbill.store.protocol import ClientStore


class Checked(msgspec.Struct, frozen=True):
    """What was found, of so many runs."""

    runs: int
    misfits: tuple[Misfit, ...]


def misfits(where: Where, program: str, recent: int) -> Checked:
    """Replay the runs of a store against a program's code."""
    registry = load_app(program).registry
    found = misfits_of_source(registry)

    async def replay(client: ClientStore) -> int:
        count = 0
        async for record in records(client, where.namespace, recent=recent):
            count += 1
            if (misfit := misfit_of(registry, record)) is not None:
                found.append(misfit)
        return count

    with damage_told(where.url):
        count = read(where.url, replay)
    return Checked(count, tuple(found))
