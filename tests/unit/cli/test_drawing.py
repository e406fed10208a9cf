"""A graph as text for those who draw it; names are users' data, and must not act there."""

from watchbill.cli.drawing import as_dot, as_mermaid
from watchbill.model.graph import Graph, Node

GRAPH = Graph(
    (Node("charge", "charge", "step", "completed"), Node('say "hi"\n<b>', "say", "step", "open")),
    (("charge", 'say "hi"\n<b>'),),
)


def test_mermaid():
    assert as_mermaid(GRAPH).splitlines()[:4] == [
        "flowchart TD",
        '    n0["charge"]:::completed',
        '    n1["say #quot;hi#quot;\\n&lt;b>"]:::open',
        "    n0 --> n1",
    ]


def test_dot():
    assert as_dot(GRAPH) == (
        "digraph run {\n"
        "    node [shape=box]\n"
        '    n0 [label="charge", color="#2e7d32"]\n'
        '    n1 [label="say \\"hi\\"\\\\n<b>", color="#1565c0"]\n'
        "    n0 -> n1\n"
        "}"
    )
