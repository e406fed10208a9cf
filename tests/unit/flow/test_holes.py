"""A journal with a hole: the first that counts is found, and none that a newer part or a rewind has masked."""

from tests.unit.cli.records import an_entry
from watchbill.flow.parts import Hole, hole_in
from watchbill.model.call import JournalEntry, Kind


def steps(*seqs: int) -> list[JournalEntry]:
    return [an_entry(seq, Kind.STEP, f"charge.{seq}") for seq in seqs]


def test_hole_is_found_with_the_call_before_it() -> None:
    assert hole_in(steps(1, 2, 3)) is None
    assert hole_in(steps(1, 2, 5, 8)) == Hole(3, 4, "charge.2")
    assert hole_in(steps(3, 4)) == Hole(1, 2, None)


def test_hole_of_an_earlier_part_does_not_count() -> None:
    continued = an_entry(6, Kind.CONTINUED, "", body=["order", 1, []])
    assert hole_in([*steps(1, 4, 5), continued, *steps(7, 8)]) is None
    assert hole_in([continued, *steps(7, 8)]) is None, "the newest part may be all that is kept"
    assert hole_in([continued, *steps(7, 9)]) == Hole(8, 8, "charge.7")


def test_rewind_masks_a_hole_only_if_nothing_behind_it_is_left() -> None:
    def rewound(seq: int, key: str) -> JournalEntry:
        return an_entry(seq, Kind.REWOUND, key, body="ada")

    assert hole_in([*steps(1, 2, 5), rewound(6, "charge.2")]) is None
    assert hole_in([*steps(1, 2, 5, 6), rewound(7, "charge.6")]) == Hole(3, 4, "charge.2")
    assert hole_in([*steps(1, 2), rewound(3, "charge.2"), *steps(6)]) == Hole(4, 5, "charge.1")
