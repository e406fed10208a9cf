"""Alarms: what was beyond a learned limit and left alone, and how much of that was done by itself. Pure.

Read from what was decided: that an attempt is beyond the limit is written down once, when it is found, and that it was
done all the same when it is. So nothing is counted while all goes well, and nothing before enough was learned.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.model.decision import BY_ITSELF, OF_AN_ALARM, Decision
from watchbill.model.metrics import HistoryRow
from watchbill.model.sealed import is_sealed
from watchbill.model.suggestion import Alarms, Rule
from watchbill.model.usual import SUGGEST

LATELY: Final[Micros] = 7 * 86_400 * SECOND  # a week has all that a week's work can bring

_decode = msgspec.json.Decoder(Decision).decode


def alarms_of(rows: Iterable[HistoryRow]) -> Mapping[Rule, Alarms]:
    """Count what would have been ended, of the rules whose author wants that counted."""
    found: dict[tuple[int, str, int], Rule] = {}
    well: set[tuple[int, str, int]] = set()
    for row, *_ in rows:
        if is_sealed(row.body):
            continue  # with a key that is not here
        decision, attempt = _decode(row.body), (row.run, row.call, row.fence)
        mode, _, limit = decision.beyond.partition(" ")
        if mode == SUGGEST:
            found[attempt] = decision.step, decision.rung, limit
        elif row.n == OF_AN_ALARM and decision.chosen == BY_ITSELF:
            well.add(attempt)
    counted: dict[Rule, Alarms] = {}
    for attempt, rule in found.items():
        beyond, by_itself = counted.get(rule, Alarms())
        counted[rule] = Alarms(beyond + 1, by_itself + int(attempt in well))
    return counted
