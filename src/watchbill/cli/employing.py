"""Employing: how `up` and `fleet` start agents: by one command line, which holds no password."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from watchbill.env import Employed, employ
from watchbill.errors import InvalidOptionError, StoreUrlError
from watchbill.store.address import is_memory, parse_url, redacted

HANDED_OVER: Final = "WATCHBILL_AGENT_STORE"  # not $WATCHBILL_STORE: that comes after what the program says


def employer(program: str, store: str | None, asked: Mapping[str, object]) -> Callable[[], Awaitable[Employed]]:
    """Give what starts an agent; `store` is what the operator said, None: the program and its environment say it."""
    words, environment = ["-m", "watchbill", "agent", program, "--employed"], {}
    if store is not None and redacted(store) == store:
        words.append(f"--store={store}")
    elif store is not None:
        environment[HANDED_OVER] = store  # everybody on the machine can read a command line
    words += [f"--{word.replace('_', '-')}={value}" for word, value in asked.items() if value not in (None, "")]
    return partial(employ, *words, environment=environment)


def check_address(url: str) -> None:
    """Refuse what is no address, as any other option that cannot be meant."""
    try:
        parse_url(url)
    except StoreUrlError as error:
        raise InvalidOptionError(str(error)) from error


def check_store(url: str, command: str) -> None:
    """Refuse a store that the agents could not reach, or that is none."""
    check_address(url)
    if is_memory(url):
        raise InvalidOptionError(
            f"`watchbill {command}` has its agents in processes of their own, and {url} ends with the process that made"
            " it: use sqlite:///file.db or postgresql://user:password@host/database"
        )
