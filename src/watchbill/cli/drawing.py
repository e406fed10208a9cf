"""Drawing: the graph of a run as text that other programs draw."""

from watchbill.cli.escape import visible
from watchbill.model.graph import Graph

_COLOURS = {"completed": "#2e7d32", "failed": "#c62828", "cancelled": "#757575", "open": "#1565c0"}


def as_mermaid(graph: Graph) -> str:
    """Write it for Mermaid, which GitHub and many editors draw."""
    names = {node.key: f"n{place}" for place, node in enumerate(graph.nodes)}
    lines = ["flowchart TD"]
    lines += [f'    {names[node.key]}["{_for_mermaid(node.key)}"]:::{node.state}' for node in graph.nodes]
    lines += [f"    {names[before]} --> {names[after]}" for before, after in graph.edges]
    lines += [f"    classDef {state} stroke:{colour}" for state, colour in _COLOURS.items()]
    return "\n".join(lines)


def as_dot(graph: Graph) -> str:
    """Write it for Graphviz."""
    names = {node.key: f"n{place}" for place, node in enumerate(graph.nodes)}
    lines = ["digraph run {", "    node [shape=box]"]
    lines += [
        f'    {names[node.key]} [label="{_for_dot(node.key)}", color="{_COLOURS[node.state]}"]' for node in graph.nodes
    ]
    lines += [f"    {names[before]} -> {names[after]}" for before, after in graph.edges]
    return "\n".join([*lines, "}"])


def _for_mermaid(text: str) -> str:
    return visible(text).replace("&", "&amp;").replace('"', "#quot;").replace("<", "&lt;")


def _for_dot(text: str) -> str:
    return visible(text).replace("\\", "\\\\").replace('"', '\\"')
