"""Who is missed, who replaces whom, which threads are named, and what is said about it."""

import msgspec

from tests.unit.supervisor.rows import NOON, SECOND
from watchbill.model.complement import AWAY_FOR, SAYS_SO, Abandoned, Complement, Hand, Inline, read_abandoned, says_so
from watchbill.model.lost import Found, as_inline, is_inline
from watchbill.supervisor.missing import (
    MOST_NAMED,
    NAMED_AFTER,
    STEADY_AFTER,
    abandoned_by,
    could_do,
    missing,
    moment,
    told_of_lost,
    told_of_threads,
)

RACK = b'{"boot":"b-1","pid_namespace":"pid:[1]","pid":%d}'


def a_hand(id: int = 1, **changes: object) -> Hand:
    hand = Hand(
        id, "default", "", f"h{id}", b"{}", (), NOON - 900 * SECOND, NOON, True, Found.EXPIRED, NOON, False, 0, b""
    )
    return hand._replace(**changes)  # type: ignore[arg-type]


def a_lost(id: int = 1, **changes: object) -> Hand:
    return a_hand(id, **{"here": False, "told": True, "found": Found.DEAD, "lost_at": NOON + SECOND, **changes})


def aboard(*hands: Hand, now: int = NOON + 2 * SECOND) -> Complement:
    return Complement(hands, False, now)


def ids(hands: list[Hand]) -> list[int]:
    return [hand.id for hand in hands]


# --- who is missed


def test_who_was_lost_is_missed_until_it_has_been_away_for_long() -> None:
    assert ids(missing(aboard(a_lost(), a_hand(2)))) == [1]
    assert ids(missing(aboard(a_lost(), now=NOON + SECOND + AWAY_FOR - 1))) == [1]
    assert ids(missing(aboard(a_lost(), now=NOON + SECOND + AWAY_FOR))) == []


def test_who_was_not_told_of_yet_is_not_missed_yet() -> None:
    assert missing(aboard(a_lost(told=False))) == []


def test_a_room_that_runs_steps_itself_is_no_host_and_nobody_misses_it_nor_is_replaced_by_it() -> None:
    inline = as_inline(RACK % 7)
    assert missing(aboard(a_lost(info=inline))) == []
    newcomer = a_hand(2, name="h1", joined_at=NOON + SECOND, info=inline)
    assert ids(missing(aboard(a_lost(), newcomer))) == [1]


def test_what_is_no_identity_stays_as_it_is_and_is_a_host() -> None:
    assert (as_inline(b"p1 7"), is_inline(b"p1 7"), is_inline(b"{}"), is_inline(b"[1]")) == (
        b"p1 7",
        False,
        False,
        False,
    )
    assert is_inline(as_inline(b"{}"))


def test_one_of_the_same_name_that_came_since_replaces_it_in_its_namespace_and_region() -> None:
    came = {"name": "h1", "joined_at": NOON + SECOND}
    assert missing(aboard(a_lost(), a_hand(2, **came))) == []
    assert ids(missing(aboard(a_lost(), a_hand(2, **{**came, "joined_at": NOON - 1})))) == [1], "it was there before"
    assert ids(missing(aboard(a_lost(), a_hand(2, **came, region="eu")))) == [1]
    assert ids(missing(aboard(a_lost(), a_hand(2, **came, namespace="other")))) == [1]
    assert ids(missing(aboard(a_lost(), a_hand(2, **came, here=False)))) == [1]


def test_one_that_was_started_since_on_its_machine_replaces_it_too() -> None:
    lost, came = a_lost(info=RACK % 1), a_hand(2, info=RACK % 2, joined_at=NOON + SECOND)
    assert missing(aboard(lost, came)) == []
    elsewhere = came._replace(info=came.info.replace(b"b-1", b"b-2"))
    assert ids(missing(aboard(lost, elsewhere))) == [1]
    assert ids(missing(aboard(a_lost(), a_hand(2, joined_at=NOON + SECOND)))) == [1], "nobody can tell where they are"


def test_each_newcomer_replaces_one() -> None:
    lost = [a_lost(id, info=RACK % id, lost_at=NOON + id) for id in (1, 2, 3)]
    came = a_hand(4, info=RACK % 4, joined_at=NOON + SECOND)
    assert ids(missing(aboard(*lost, came))) == [2, 3]
    named = came._replace(name="h3")
    assert ids(missing(aboard(*lost, named))) == [1, 2], "by its name first"


def test_who_has_just_come_replaces_nobody_for_good() -> None:
    came = a_hand(2, name="h1", joined_at=NOON + SECOND)
    assert missing(aboard(a_lost(), came), steady=False) == []
    assert ids(missing(aboard(a_lost(), came), steady=True)) == [1]
    assert missing(aboard(a_lost(), came, now=came.joined_at + STEADY_AFTER), steady=True) == []


def test_what_waits_is_explained_by_one_who_could_do_it() -> None:
    lost = [a_lost(needs=("gpu=2",), region="eu")]
    assert could_do(lost, "default", "eu", ("gpu=1",))
    assert could_do(lost, "default", "eu", ())
    assert not could_do(lost, "default", "eu", ("gpu=3",))
    assert not could_do(lost, "default", "", ())
    assert not could_do(lost, "other", "eu", ())


# --- what is said


def test_it_says_who_was_lost_when_by_which_evidence_and_what_they_held() -> None:
    lost = [a_lost(1, held=2), a_lost(2, region="eu", found=Found.SILENT), a_lost(3, found=Found.EXPIRED, held=1)]
    told = told_of_lost(lost, aboard(*lost, a_hand(4)))
    at = f"at {moment(NOON + SECOND)}"
    assert told.said == (
        f"3 agents were lost: 'h1' {at}: its process is gone, the 2 attempts that it held are moved;"
        f" 'h2' in region eu {at}: its connection is gone, and it was not heard for a beat, it held nothing;"
        f" 'h3' {at}: it did not renew its lease, the attempt that it held is moved; no agent is left in region eu"
    )
    assert "`watchbill agents`" in told.remedy


def test_of_many_it_names_some() -> None:
    lost = [a_lost(id) for id in range(50)]
    said = told_of_lost(lost, aboard(*lost)).said
    assert said.startswith("50 agents were lost: ")
    assert said.endswith(f"; and {50 - MOST_NAMED} more; no agent is left")
    assert said.count("its process is gone") == MOST_NAMED


# --- threads


def a_thread(n: int = 1, since: int = NOON) -> Abandoned:
    return Abandoned(f"r-{n}", "encode", "encode", NOON - 60 * SECOND, since)


def test_a_thread_is_named_when_it_had_time_to_return() -> None:
    said = msgspec.json.encode(Inline((a_thread(1), a_thread(2, NOON + SECOND)), 2))
    assert says_so(said)
    hand = a_hand(said=said)
    assert abandoned_by(hand, NOON + NAMED_AFTER - 1) == ((), 0, NOON + NAMED_AFTER)
    assert abandoned_by(hand, NOON + NAMED_AFTER) == ((a_thread(1),), 1, NOON + SECOND + NAMED_AFTER)
    threads, count, next_at = abandoned_by(hand, NOON + 2 * NAMED_AFTER)
    assert (len(threads), count, next_at) == (2, 2, None)


def test_who_has_none_any_more_says_so_and_is_understood() -> None:
    none = msgspec.json.encode(Inline())
    assert (none, says_so(none), says_so(SAYS_SO)) == (b"{}", False, True)
    assert read_abandoned(none) == read_abandoned(b"") == read_abandoned(SAYS_SO + b"7}") == Inline()


def test_it_says_which_step_of_which_run_since_when_and_what_to_do() -> None:
    told = told_of_threads(a_hand(), [a_thread()], 1)
    assert told.said.startswith(
        "agent 'h1': a thread of it runs on that nobody waits for, and keeps its slot: step 'encode' of run 'r-1', "
    )
    assert "restart that process" in told.remedy
    assert "isolation='own'" in told.remedy
    assert told.examples == ("r-1",)
    many = told_of_threads(a_hand(), [a_thread(n) for n in range(20)], 32)
    assert many.said.startswith("agent 'h1': 32 threads of it run on that nobody waits for, and keep their slots: ")
    assert many.said.endswith(f"; and {32 - MOST_NAMED} more")
