"""Mentioned: the agents that the history of a run names. Pure: rows in, numbers out."""

from collections.abc import Sequence

from watchbill.model.attempt import AttemptRow
from watchbill.model.call import JournalEntry
from watchbill.model.decision import DecisionRow, agent_named


def mentioned_agents(
    journal: Sequence[JournalEntry], attempts: Sequence[AttemptRow], decisions: Sequence[DecisionRow]
) -> list[int]:
    """Give the numbers of the agents that a run's journal, rows and decisions name, in order."""
    named = {entry.agent for entry in journal}
    named.update(row.agent for row in attempts)
    named.update(agent_named(row.body) for row in decisions)
    return sorted(agent for agent in named if agent is not None)
