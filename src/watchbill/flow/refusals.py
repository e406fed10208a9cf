"""Refusals: what an event loop can do and a workflow's loop must not, because no replay could repeat it.

So threads, sockets, subprocesses and signals are refused where they are asked for, at no cost: to_thread, httpx and
database drivers all come through these methods.
"""

from asyncio import AbstractEventLoop as Loop
from asyncio import _get_running_loop
from collections.abc import Callable
from typing import NoReturn, TypeVar, cast

from watchbill.errors import NotInWorkflowError

F = TypeVar("F", bound=Callable[..., object])


def _refused(method: F) -> F:
    def refuse(self: "Refusals", *_: object, **__: object) -> NoReturn:
        self.refuse(method.__name__)

    return cast(F, refuse)


class Refusals(Loop):
    """An event loop that refuses the world."""

    __slots__ = ("refused",)

    refused: NotInWorkflowError | None

    def refuse(self, call: str) -> NoReturn:
        """Refuse one of the methods below."""
        self.refuse_for(NotInWorkflowError(call))

    def refuse_for(self, error: NotInWorkflowError) -> NoReturn:
        """Raise, and remember it: a workflow that swallows the error must not go on as if it had an answer."""
        # Another thread that reaches for this loop is told, but its moment is not part of the run.
        if self.refused is None and _get_running_loop() is self:
            self.refused = error
        raise error

    add_reader = _refused(Loop.add_reader)
    add_signal_handler = _refused(Loop.add_signal_handler)
    add_writer = _refused(Loop.add_writer)
    call_soon_threadsafe = _refused(Loop.call_soon_threadsafe)
    connect_accepted_socket = _refused(Loop.connect_accepted_socket)
    connect_read_pipe = _refused(Loop.connect_read_pipe)
    connect_write_pipe = _refused(Loop.connect_write_pipe)
    create_connection = _refused(Loop.create_connection)
    create_datagram_endpoint = _refused(Loop.create_datagram_endpoint)
    create_server = _refused(Loop.create_server)
    create_unix_connection = _refused(Loop.create_unix_connection)
    create_unix_server = _refused(Loop.create_unix_server)
    default_exception_handler = _refused(Loop.default_exception_handler)
    get_exception_handler = _refused(Loop.get_exception_handler)
    getaddrinfo = _refused(Loop.getaddrinfo)
    getnameinfo = _refused(Loop.getnameinfo)
    remove_reader = _refused(Loop.remove_reader)
    remove_signal_handler = _refused(Loop.remove_signal_handler)
    remove_writer = _refused(Loop.remove_writer)
    run_forever = _refused(Loop.run_forever)
    run_in_executor = _refused(Loop.run_in_executor)
    run_until_complete = _refused(Loop.run_until_complete)
    sendfile = _refused(Loop.sendfile)
    set_debug = _refused(Loop.set_debug)
    set_default_executor = _refused(Loop.set_default_executor)
    set_exception_handler = _refused(Loop.set_exception_handler)
    set_task_factory = _refused(Loop.set_task_factory)
    shutdown_asyncgens = _refused(Loop.shutdown_asyncgens)
    shutdown_default_executor = _refused(Loop.shutdown_default_executor)
    sock_accept = _refused(Loop.sock_accept)
    sock_connect = _refused(Loop.sock_connect)
    sock_recv = _refused(Loop.sock_recv)
    sock_recv_into = _refused(Loop.sock_recv_into)
    sock_recvfrom = _refused(Loop.sock_recvfrom)
    sock_recvfrom_into = _refused(Loop.sock_recvfrom_into)
    sock_sendall = _refused(Loop.sock_sendall)
    sock_sendfile = _refused(Loop.sock_sendfile)
    sock_sendto = _refused(Loop.sock_sendto)
    start_tls = _refused(Loop.start_tls)
    stop = _refused(Loop.stop)
    subprocess_exec = _refused(Loop.subprocess_exec)
    subprocess_shell = _refused(Loop.subprocess_shell)
