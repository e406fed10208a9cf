"""Shares: from any beginning, whoever comes or goes, all is owned, evenly, and no more moves than must."""

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from watchbill.model.lease import Member
from watchbill.scheduler.share import drivers, shares, surplus, window

SHARDS = 16

ids = st.sets(st.integers(1, 99), min_size=1, max_size=20)
codes = st.frozensets(st.sampled_from("abcd"), max_size=4)
fleets = st.dictionaries(st.integers(1, 99), codes, min_size=1, max_size=12)


def members(ids: Iterable[int], knows: Sequence[str] = ("order",)) -> list[Member]:
    return [Member(id, tuple(knows), b"{}") for id in ids]


class Fleet:
    """Schedulers that each do what a scheduler does with its share, in any order, and a count of what moved."""

    def __init__(self, held: dict[int, set[int]]) -> None:
        self.held = held
        self.moved = 0

    @property
    def free(self) -> set[int]:
        return set(range(1, SHARDS + 1)) - {shard for held in self.held.values() for shard in held}

    def settle(self, due: dict[int, int], order: Sequence[int]) -> None:
        for id in self.held.keys() - due.keys():
            del self.held[id]  # it left, or died, and what it held is free
        for id in order:
            self.held.setdefault(id, set())
        asked = dict.fromkeys(order, 0)
        for _ in range(SHARDS + 1):
            for id in order:
                mine = self.held[id]
                for shard in surplus(mine, due[id], ()):
                    mine.remove(shard)
                    self.moved += 1
                missing = [shard for shard in range(1, SHARDS + 1) if shard not in mine]
                wanted = window(missing, due[id] - len(mine), asked[id])
                asked[id] = wanted[-1] if wanted else asked[id]
                mine |= set(wanted) & self.free

    def sizes(self, of: Iterable[int]) -> list[int]:
        return [len(self.held[id]) for id in of]


@st.composite
def beginnings(draw: st.DrawFn) -> dict[int, set[int]]:
    """Anybody holds anything, and some is free."""
    holders = sorted(draw(ids))
    held: dict[int, set[int]] = {id: set() for id in holders}
    for shard in range(1, SHARDS + 1):
        holder = draw(st.sampled_from([None, *holders]))
        if holder is not None:
            held[holder].add(shard)
    return held


@given(fleets, st.integers(0, 40))
def test_every_shard_is_somebodys_and_the_shares_are_even(fleet, shards):
    everyone = [Member(id, tuple(sorted(knows)), b"") for id, knows in fleet.items()]
    due, driving = shares(everyone, shards), drivers(everyone)
    assert set(due) == set(fleet)
    assert sum(due.values()) == shards
    assert all(due[id] == 0 for id in set(fleet) - set(driving))
    assert max(due[id] for id in driving) - min(due[id] for id in driving) <= 1


@given(fleets)
def test_only_those_hold_shards_whose_code_nobody_surpasses(fleet):
    driving = drivers([Member(id, tuple(sorted(knows)), b"") for id, knows in fleet.items()])
    surpassed = {id for id, knows in fleet.items() if any(knows < other for other in fleet.values())}
    assert driving == sorted(set(fleet) - surpassed)
    assert driving, "somebody always does"


def test_shards_drain_to_whoever_knows_more_and_incomparable_code_shares():
    old, new = Member(1, ("order",), b""), Member(2, ("order", "ship"), b"")
    assert shares([old, new], SHARDS) == {1: 0, 2: 16}
    assert shares([old, Member(2, ("ship",), b"")], SHARDS) == {1: 8, 2: 8}
    assert shares([old, new, Member(3, ("order", "bill"), b"")], SHARDS) == {1: 0, 2: 8, 3: 8}
    assert shares([old], SHARDS) == {1: 16}
    assert shares([], SHARDS) == {}


@given(fleets)
def test_everybody_computes_the_same_whatever_the_order_of_the_list(fleet):
    everyone = [Member(id, tuple(sorted(knows)), b"") for id, knows in fleet.items()]
    assert shares(everyone, SHARDS) == shares(everyone[::-1], SHARDS)


@given(ids, st.integers(1, 99))
def test_nobody_gets_more_because_somebody_came_and_nobody_less_because_somebody_went(present, other):
    without, together = shares(members(present - {other}), SHARDS), shares(members(present | {other}), SHARDS)
    assert all(together[id] <= without[id] for id in without)


@given(beginnings(), ids, st.randoms(use_true_random=False))
def test_from_any_beginning_all_is_owned_evenly_and_only_the_excess_has_moved(held, present, random):
    due = shares(members(present), SHARDS)
    excess = sum(max(0, len(held.get(id, ())) - due[id]) for id in present)
    fleet = Fleet({id: set(shards) for id, shards in held.items()})
    order = sorted(present)
    random.shuffle(order)
    fleet.settle(due, order)
    sizes = fleet.sizes(present)
    assert sum(sizes) == SHARDS
    assert max(sizes) - min(sizes) <= 1
    assert fleet.moved == excess


@given(ids, st.lists(st.tuples(st.booleans(), st.integers(1, 99)), max_size=8), st.randoms(use_true_random=False))
def test_through_joins_and_leaves_no_more_moves_than_must(present, events, random):
    present = set(present)
    fleet = Fleet({})
    fleet.settle(shares(members(present), SHARDS), sorted(present))
    for joins, id in events:
        fleet.moved = 0
        came = joins and id not in present
        present = present | {id} if joins else (present - {id} or present)
        order = sorted(present)
        random.shuffle(order)
        due = shares(members(present), SHARDS)
        fleet.settle(due, order)
        assert sorted(fleet.sizes(present)) == sorted(due.values())
        assert fleet.moved == (due[id] if came else 0), "a newcomer gets what it lacks; what leaves is only taken up"


@given(beginnings(), st.integers(0, SHARDS), st.sets(st.integers(1, SHARDS)))
def test_what_cannot_be_given_now_is_kept(held, share, busy):
    for mine in held.values():
        given_up = surplus(mine, share, busy)
        assert set(given_up) <= mine - busy
        assert len(given_up) == min(max(0, len(mine) - share), len(mine - busy))


@given(st.sets(st.integers(1, SHARDS), min_size=1), st.integers(1, SHARDS))
def test_every_missing_shard_is_asked_for_in_turn(missing, lacking):
    asked: list[int] = []
    rounds = -(-len(missing) // lacking)
    for _ in range(rounds):
        asked += window(sorted(missing), lacking, asked[-1] if asked else 0)
    assert set(asked) == missing
    assert window(sorted(missing), 0, 0) == []
    assert window(sorted(missing), -1, 0) == []
