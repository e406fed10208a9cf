"""Refusing: runs of which the store refuses every journal entry, as a trigger or a constraint of its users does."""

import sqlite3
from typing import Final

from watchbill.testing.chance import Chance
from watchbill.testing.network import Letter, Network
from watchbill.testing.workload import Wish, chain
from watchbill.testing.world import World

MANY: Final = 2
WORDS: Final = "this run is cursed"  # how the store refuses
_TRIGGER: Final = """
    CREATE TEMP TRIGGER refused BEFORE INSERT ON main.journal
    WHEN EXISTS (SELECT 1 FROM main.run WHERE num = new.run AND id GLOB 'cursed-*') BEGIN
        SELECT RAISE(ABORT, 'this run is cursed');
    END
"""
_WRONG: Final = """
    SELECT id, status, held, incident
    FROM main.run
    WHERE id GLOB 'cursed-*' AND (held IS NULL OR NOT instr(held, 'this run is cursed') OR incident IS NULL)
"""


class RefusingNetwork(Network):
    """To a store that refuses what is said of some runs."""

    def _may_raise(self, letter: Letter, error: Exception) -> bool:
        refused = isinstance(error, sqlite3.IntegrityError) and WORDS in str(error)
        self.refused += refused
        return refused


def curse(world: World, chance: Chance, within: float) -> list[Wish]:
    """Let the store refuse what is written about some runs; gives these runs."""
    vars(world)["_connection"].execute(_TRIGGER)
    drawn = []
    for number in range(MANY):
        args = (chance.below(50), 1 + chance.below(3), chance.choose((0.1, 0.5, 1.5)))
        drawn.append(Wish(f"cursed-{number}", chain, args, chance.within(0, within), (), ("stuck",)))
    return drawn


def unheld(world: World) -> list[object]:
    """Give the cursed runs that are not held with the words of the store, in an incident."""
    return list(vars(world)["_connection"].execute(_WRONG))
