"""A proxy before a server of buckets, which holds, refuses and loses requests for tests."""

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_SECONDS = 60
_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive"}


@dataclass(slots=True)
class Held:
    """Requests that are kept from the server until they are released."""

    method: str
    path: re.Pattern[str]
    reached: threading.Event = field(default_factory=threading.Event)
    _released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        self._released.set()

    def meet(self) -> None:
        self.reached.set()
        self._released.wait(_SECONDS)


class Proxy:
    """Passes requests on, unless it is told otherwise."""

    def __init__(self, port: int) -> None:
        self.requests: list[str] = []
        """Method and path of each."""
        self.refused: tuple[str, ...] = ()
        """Methods that are answered by `answer`."""
        self.answer = (403, "<Error><Code>AccessDenied</Code></Error>")
        self.tags_are_bare = False
        """Whether it knows tags of If-Match without quotes only, as Ceph 16 does."""
        self.is_silent = False
        """Whether requests are taken and never answered."""
        self._held: list[Held] = []
        self._ended = threading.Event()
        handler = type("Handler", (_Handler,), {"proxy": self, "behind": port})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]

    def hold(self, method: str, path: str) -> Held:
        """From now on keep requests of a method whose path matches."""
        held = Held(method, re.compile(path))
        self._held.append(held)
        return held

    def let_talk(self) -> None:
        """Let it answer again, also those who wait."""
        self.is_silent = False
        self._ended.set()
        self._ended = threading.Event()

    def meet(self, method: str, path: str) -> None:
        self.requests.append(f"{method} {path}")
        for held in list(self._held):
            if held.method == method and held.path.search(path):
                held.meet()
        if self.is_silent:
            self._ended.wait(_SECONDS)

    def count(self, part: str) -> int:
        """How many requests had `part` in their paths."""
        return sum(part in request for request in list(self.requests))

    @contextmanager
    def running(self) -> Iterator["Proxy"]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            for held in self._held:
                held.release()
            self._server.shutdown()
            self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: Proxy
    behind: int

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.proxy.meet(self.command, self.path)
        if self.command in self.proxy.refused:
            status, text = self.proxy.answer
            quoted = text.replace("{headers}", str(self.headers))
            self._say(status, [("content-type", "text/plain")], quoted.encode())
            return
        tag = self.headers.get("if-match", "")
        if self.proxy.tags_are_bare and tag:
            if tag.startswith('"'):
                self._say(412, [], b"<Error><Code>PreconditionFailed</Code></Error>")
                return
            self.headers.replace_header("if-match", f'"{tag}"')
        behind = http.client.HTTPConnection("127.0.0.1", self.behind, timeout=_SECONDS)
        with closing(behind) as server:  # also if whoever asked has gone
            server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                server.putheader(name, value)
            server.endheaders(body)
            answer = server.getresponse()
            kept = [(n, v) for n, v in answer.getheaders() if n.lower() not in _HOP]
            length = answer.getheader("content-length")
            self._say(answer.status, kept, answer.read(), length=length)

    def _say(
        self, status: int, headers: list[tuple[str, str]], body: bytes, length: str | None = None
    ) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        is_head = self.command == "HEAD"
        self.send_header("content-length", length if is_head and length else str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:  # whoever asked has gone
            return


@contextmanager
def proxy_before(port: int) -> Iterator[Proxy]:
    """A proxy before a server on this machine."""
    with Proxy(port).running() as proxy:
        yield proxy
