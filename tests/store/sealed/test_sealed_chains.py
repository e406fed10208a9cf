"""Through doors with keys decisions are linked as they are stored: sealed."""

from watchbill.testing.conformance.chains import (
    test_decisions_are_linked_in_the_order_in_which_they_were_made,
    test_of_two_who_link_the_same_at_once_one_is_refused,
)

__all__ = [
    "test_decisions_are_linked_in_the_order_in_which_they_were_made",
    "test_of_two_who_link_the_same_at_once_one_is_refused",
]
