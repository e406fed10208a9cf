"""Incidents about what nobody can do: opened after a minute, once, and resolved by themselves."""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from watchbill import App, Event, sleep
from watchbill.model.incident import Incident
from watchbill.testing.watch import Watch

app = App("sqlite:///:memory:")


@app.step(needs="gpu")
async def render(n: int) -> int:
    return n


@app.workflow
async def film(n: int) -> int:
    return await render(n)


@app.workflow
async def rest(days: int) -> int:
    await sleep(f"{days}d")
    return days


class Room:
    """The world of a test, with what the App's own client says about it."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.told: list[Event] = []

    def incidents(self, *, resolved: bool = False) -> list[Incident]:
        return self._do(lambda: app.incidents(resolved=resolved))

    def heard(self, kind: str) -> list[str]:
        return [event.note for event in self.told if event.kind == kind]

    def _do(self, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        [trial] = self.watch._trials.values()
        found: Any = trial.do("the question", ask)
        self.watch._settle()
        return found


@pytest.fixture
def room(watch: Watch) -> Iterator[Room]:
    room = Room(watch)
    unsubscribe = app.events.subscribe(room.told.extend)
    yield room
    unsubscribe()


def test_calls_that_no_agent_can_take_are_told_after_a_minute_and_once(room: Room) -> None:
    handles = [room.watch.start(film, n) for n in range(3)]
    room.watch.jump("55s")
    assert room.incidents() == []
    room.watch.jump("6s")
    [incident] = room.incidents()
    assert incident.said.startswith("no agent for gpu: 3 calls wait, the oldest for 6")
    assert incident.remedy == "start one: watchbill agent APP --needs gpu"
    assert (incident.state, incident.members) == ("open", 3)
    room.watch.jump("10m")
    [later] = room.incidents()
    assert later.id == incident.id
    assert later.said.startswith("no agent for gpu: 3 calls wait, the oldest for 6")
    [note] = room.heard("incident.opened")
    assert note.endswith("; start one: watchbill agent APP --needs gpu")
    assert "no agent for gpu; start one: watchbill agent APP --needs gpu." in str(handles[0].explain())
    assert handles[0].status().health == "waiting_for_agent"


def test_it_is_resolved_by_itself_when_nothing_waits_any_more(room: Room) -> None:
    handle = room.watch.start(film, 7)
    room.watch.jump("2m")
    assert len(room.incidents()) == 1
    handle.cancel("nobody needs it")
    room.watch.jump("15s")
    assert room.incidents() == []
    [healed] = room.incidents(resolved=True)
    assert (healed.state, healed.resolved_at is not None) == ("resolved", True)
    assert len(room.heard("incident.resolved")) == 1


def test_a_house_that_only_sleeps_is_not_looked_at_every_ten_seconds(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    from watchbill.store.sqlite.supervisor import SqliteSupervisor

    looks = []
    backlog = SqliteSupervisor.backlog

    async def counted(doors: SqliteSupervisor) -> Any:
        looks.append(1)
        return await backlog(doors)

    monkeypatch.setattr(SqliteSupervisor, "backlog", counted)
    assert watch.run(rest, 30) == 30  # nobody listens, so that nothing is measured every minute either
    assert len(looks) < 10
