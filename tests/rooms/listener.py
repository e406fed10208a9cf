"""A listener: a server on loopback that hears what is posted; it may refuse at first."""

import threading
from collections.abc import Callable
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Listener:
    """A server on loopback that hears what is posted; it may refuse at first."""

    def __init__(self) -> None:
        self.heard: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.saw: Callable[[Message], None] = lambda _: None  # is called with the headers of every request
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                listener.saw(self.headers)
                status = listener.answers.pop(0) if listener.answers else 200
                if status == 200:
                    listener.heard.append((dict(self.headers), body))
                self.send_response(status)
                self.end_headers()

            def do_GET(self) -> None:
                listener.saw(self.headers)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
