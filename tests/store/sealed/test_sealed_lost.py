"""Through doors with keys agents are missed as through others; nothing of it is sealed."""

from watchbill.testing.conformance.lost import (
    crew,
    test_an_idle_agent_whose_lease_has_ended_is_missed_once,
    test_the_complement_is_who_is_there_and_who_was_lost_of_late,
    test_what_runs_under_the_dead_comes_with_how_they_are_known_to_be,
    test_whose_threads_run_on_is_heard_until_it_says_otherwise_or_is_gone,
)

__all__ = [
    "crew",
    "test_an_idle_agent_whose_lease_has_ended_is_missed_once",
    "test_the_complement_is_who_is_there_and_who_was_lost_of_late",
    "test_what_runs_under_the_dead_comes_with_how_they_are_known_to_be",
    "test_whose_threads_run_on_is_heard_until_it_says_otherwise_or_is_gone",
]
