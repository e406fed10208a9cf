"""Through doors with keys agents say what they did, and hear that they are suspended; nothing of it is sealed."""

from watchbill.testing.conformance.suspensions import (
    fleet,
    test_a_suspended_agent_hears_of_it_and_is_shown_as_such,
    test_what_an_agent_says_is_read_with_the_time_at_which_it_was_said,
)

__all__ = [
    "fleet",
    "test_a_suspended_agent_hears_of_it_and_is_shown_as_such",
    "test_what_an_agent_says_is_read_with_the_time_at_which_it_was_said",
]
