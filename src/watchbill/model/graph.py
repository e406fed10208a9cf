"""Graph: the calls of a run, and which of them waited for which."""

import msgspec


class Node(msgspec.Struct, frozen=True):
    """One call: a step, timer, child, message or question (ask); open, completed, failed or cancelled."""

    key: str
    name: str
    kind: str
    state: str


class Graph(msgspec.Struct, frozen=True):
    """Calls in the order in which they began, and who waited for whom: (before, after)."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    more: bool = False  # there are more calls than these
