"""Escape: ids, errors and results are users' data; printed, they must not act on a terminal.

What is not printable (control characters, invisible marks, those that turn text around) is written as its escape.
Markup of rich needs none: tables hold `Text`, not strings, and so it is never read as markup.
"""

import json
import re

_PERHAPS = re.compile(r"[^ -~]+")  # finds whatever is not plain ASCII quickly, in large results too


def visible(text: str) -> str:
    r"""Give the text in one line that is safe to print: a newline is written as `\n`."""
    return _PERHAPS.sub(lambda found: _escaped(found[0]), text)


def visible_lines(text: str) -> list[str]:
    """Give the lines of a text, each safe to print."""
    return [visible(line) for line in text.expandtabs(4).rstrip("\n").split("\n")]


def visible_json(text: str) -> str:
    """Give the same JSON, safe to print: such characters can only stand in strings, where JSON has escapes for them."""
    return _PERHAPS.sub(lambda found: _escaped_in_json(found[0]), text)


def _escaped(part: str) -> str:
    if part.isprintable():
        return part
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in part)


def _escaped_in_json(part: str) -> str:
    if part.isprintable():
        return part
    # Newlines stand between the values of indented JSON, and nowhere else.
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in part)
