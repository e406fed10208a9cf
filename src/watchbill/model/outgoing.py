"""Outgoing: a webhook or an alert on its way out of the system."""

from enum import StrEnum
from typing import NamedTuple


class OutgoingKind(StrEnum):
    """What is posted."""

    WEBHOOK = "webhook"  # how a run has ended, to the `notify=` address of its workflow
    ALERT = "alert"  # an incident or a question, to an address of `App(alerts=)`


class Outgoing(NamedTuple):
    """One message to one address."""

    kind: OutgoingKind
    url: str
    delivery: str  # the same for every attempt to deliver this message: the receiver can ignore repetitions
    body: str  # JSON, for web addresses
    group: str = ""  # of an alert: the group that its incident or question is for; "" is everybody
    title: str = ""  # and the words, for addresses of apprise
    text: str = ""
