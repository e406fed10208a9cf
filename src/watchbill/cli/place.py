"""Place: which store and namespace a command is about, and whose code it knows."""

import os
from typing import NamedTuple

from watchbill.app.app import DEFAULT_STORE


class Where(NamedTuple):
    """A store and a namespace; and the program, if one was named."""

    url: str
    namespace: str
    program: str | None


def found(store: str | None, namespace: str | None, program: str | None) -> Where:
    """Say where: as the options say, else as the program, else as the environment."""
    if program and (store is None or namespace is None):
        from watchbill.cli.program import load_app

        app = load_app(program)
        return Where(app.url if store is None else store, namespace or app.namespace, program)
    # An empty variable is one that somebody has unset.
    url = os.environ.get("WATCHBILL_STORE") or DEFAULT_STORE if store is None else store
    return Where(url, namespace or "default", program or None)
