"""Links of decisions: whatever is changed, removed, added or put elsewhere is found out."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from watchbill.model.chain import Chain, Entry, Unlinked, extended, fault_of, looked_at, place_of


def an_entry(n: int, **changes: object) -> Entry:
    return Entry(7, "charge", 1 << 20, n, 1_000 + n, "supervisor", bytes([n]) * 32)._replace(**changes)  # type: ignore[arg-type]


def a_chain(entries: int = 4) -> tuple[bytes, list[Entry]]:
    [extension] = extended(Unlinked(tuple([an_entry(n) for n in range(entries)]), {}))
    return extension.last, list(extension.entries)


def test_a_chain_that_nobody_touched_holds_in_any_order_of_its_entries() -> None:
    last, entries = a_chain()
    assert [place_of(entry.link) for entry in entries] == [1, 2, 3, 4]
    assert fault_of(last, entries[::-1]) is None


def test_a_chain_is_the_same_however_many_entries_are_linked_at_a_time() -> None:
    last: dict[int, bytes] = {}
    for n in range(4):
        [extension] = extended(Unlinked((an_entry(n),), last))
        assert extension.after == last.get(7)
        last[7] = extension.last
    assert last[7] == a_chain()[0]


def test_each_run_has_a_chain_of_its_own() -> None:
    mine, other = extended(Unlinked((an_entry(0), an_entry(0, run=8), an_entry(1)), {}))
    assert (mine.run, [entry.n for entry in mine.entries]) == (7, [0, 1])
    assert (other.run, [entry.n for entry in other.entries]) == (8, [0])


@given(
    place=some.integers(0, 3),
    change=some.sampled_from(
        [
            {"call": "refund"},
            {"fence": 2},
            {"n": 99},
            {"at": 5},
            {"actor": "eve"},
            {"digest": b"x" * 32},
            {"run": 8},
        ]
    ),
)
def test_whatever_is_changed_of_an_entry_is_found(place: int, change: dict[str, object]) -> None:
    last, entries = a_chain()
    entries[place] = entries[place]._replace(**change)  # type: ignore[arg-type]
    assert "was changed" in (fault_of(last, entries) or "")
    assert f"decision {place + 1} of 4" in (fault_of(last, entries) or "")


@pytest.mark.parametrize("place", range(4))
def test_an_entry_that_is_gone_or_has_lost_its_link_is_missed(place: int) -> None:
    last, entries = a_chain()
    said = "the last 1 of 4 decisions are missing" if place == 3 else f"decision {place + 1} of 4 is missing"
    assert fault_of(last, entries[:place] + entries[place + 1 :]) == said
    entries[place] = entries[place]._replace(link=None)
    assert fault_of(last, entries) == said


def test_when_all_of_them_are_gone_they_are_missed_too() -> None:
    assert fault_of(a_chain()[0], []) == "the last 4 of 4 decisions are missing"


def test_entries_cannot_change_places() -> None:
    last, entries = a_chain()
    entries[1], entries[2] = entries[1]._replace(link=entries[2].link), entries[2]._replace(link=entries[1].link)
    assert fault_of(last, entries) is not None


def test_what_does_not_hold_is_said_with_its_run() -> None:
    last, entries = a_chain()
    seen = looked_at([Chain(7, "o-7", last, tuple(entries)), Chain(8, "o-8", last, tuple(entries[:2]))])
    assert seen == (2, 6, ("run 'o-8': the last 2 of 4 decisions are missing",))
