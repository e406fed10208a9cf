"""Which agent an operator means, and how it stands."""

import msgspec
import pytest

from watchbill.app.agents import agent_status, chosen_agent
from watchbill.errors import InvalidOptionError
from watchbill.model.agent import AgentRow, Wish


def an_agent(id: int, name: str, state: str = "alive", **changes: object) -> AgentRow:
    row = AgentRow(id, name, "default", "", state, (), 10, 0, 0, 0, Wish.NONE, b"{}", b"{}", 0, ())
    return msgspec.structs.replace(row, **changes)


AGENTS = [an_agent(0xABC1, "one"), an_agent(0xABC2, "two", "silent"), an_agent(0xDEF3, "three", "lost")]


def test_agent_is_named_by_its_name_its_id_or_the_beginning_of_that() -> None:
    assert chosen_agent(AGENTS, "one").id == 0xABC1
    assert chosen_agent(AGENTS, "abc2").name == "two"
    assert chosen_agent([*AGENTS, an_agent(0xD1, "four")], "d").name == "four"


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("abc", "2 agents are meant by 'abc': abc1, abc2; name one of these"),
        ("three", "there is no agent 'three'"),  # it is gone
        ("", "there is no agent ''"),
        ("tow", "there is no agent 'tow'; did you mean 'two'"),
    ],
)
def test_name_that_no_agent_or_several_have_is_refused(named: str, why: str) -> None:
    with pytest.raises(InvalidOptionError, match=why):
        chosen_agent(AGENTS, named)


def test_agent_says_how_it_stands() -> None:
    states = [agent_status(one).state for one in [*AGENTS, an_agent(4, "four", running=2)]]
    assert states == ["idle", "silent", "lost", "busy"]
    assert agent_status(an_agent(5, "five", wish=Wish.DRAIN)).state != "idle"
