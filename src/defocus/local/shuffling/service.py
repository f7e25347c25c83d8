"""The shuffler as a process of its own: HTTP on this machine, for demonstrations and tests.

======  ===============  ==========================================================================
GET     /                the round, as JSON
POST    /envelopes       one or more envelopes, one after the other; answers how many were accepted
GET     /batches/<i>     the i-th sealed batch, from 0; 404 while there is none
POST    /batches/<i>     that the analyser has it, by a receipt that nobody else can make; 403 for others
======  ===============  ==========================================================================

Addresses, headers and times of arrival are neither logged nor kept. Only addresses of this machine are served: a
deployment puts its own transport, and whatever decides who may send, in front.
"""

import hmac
import ipaddress
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, final

from defocus.errors import InvalidParameterError, whole
from defocus.local.shuffling.shuffler import Shuffler

__all__ = ["Service", "serving"]

_LARGEST_BODY = 1 << 20
"""Bytes of one request; more would be held in memory before anything is checked."""
_PATIENCE = 10.0
"""Seconds after which a connection that says nothing is dropped."""


@final
class Service:
    """A shuffler behind a port. ``address`` tells where."""

    def __init__(
        self, shuffler: Shuffler, *, host: str = "127.0.0.1", port: int = 0, batches: int | None = None
    ) -> None:
        self.shuffler = shuffler
        self._batches: list[bytes] = []
        self._arrived: set[int] = set()
        self.failures = 0
        """How many requests broke off or failed. Nothing else is known about them."""
        self._lock = threading.Lock()
        self._wanted = batches
        self.finished = threading.Event()
        self._server = _server((_loopback(host), _port(port)), self)

    @property
    def address(self) -> str:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        return f"http://{host if isinstance(host, str) else host.decode()}:{port}"

    def run(self) -> None:
        """Serve until :meth:`stop`."""
        self._server.serve_forever(poll_interval=0.1)

    def stop(self) -> None:
        """Serve no longer."""
        self._server.shutdown()
        self._server.server_close()

    def take(self, body: bytes) -> dict[str, int]:
        """Accept envelopes laid end to end, and make a batch when there are enough."""
        length = self.shuffler.round.envelope_length
        cut = [body[i : i + length] for i in range(0, len(body), length)]
        accepted = sum(self.shuffler.accept(one) is None for one in cut)
        with self._lock:
            batch = self.shuffler.release()
            if batch is not None:
                self._batches.append(batch)
        return {"accepted": accepted, "rejected": len(cut) - accepted}

    def batch(self, index: int) -> bytes | None:
        """A sealed batch, if there is one of this number. It stays, since an answer may get lost on its way."""
        with self._lock:
            return self._batches[index] if 0 <= index < len(self._batches) else None

    def arrived(self, index: int, told: bytes) -> bool:
        """Whether it is the analyser who says that it has a batch."""
        if self.batch(index) is None or not hmac.compare_digest(told, self.shuffler.receipt(index)):
            return False
        with self._lock:
            self._arrived.add(index)
        return True

    def told(self) -> None:
        """An answer is on its way: finished, if the analyser has as many batches as wanted."""
        with self._lock:
            if self._wanted is not None and len(self._arrived) >= self._wanted:
                self.finished.set()

    def failed(self) -> None:
        """Count a request that failed, whoever made it."""
        with self._lock:
            self.failures += 1

    @property
    def made(self) -> int:
        """How many batches there are."""
        with self._lock:
            return len(self._batches)


@contextmanager
def serving(shuffler: Shuffler, **how: Any) -> Iterator[Service]:
    """A service that runs in the background and stops at the end."""
    service = Service(shuffler, **how)
    thread = threading.Thread(target=service.run, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.stop()
        thread.join()


def _handler(service: Service) -> type[BaseHTTPRequestHandler]:
    @final
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version = "defocus-shuffler"
        sys_version = ""
        timeout = _PATIENCE

        def do_GET(self) -> None:  # the name that http.server looks for
            if self.path == "/":
                self._answer(200, service.shuffler.round.to_json().encode(), "application/json")
                return
            index = _batch_number(self.path)
            found = None if index is None else service.batch(index)
            self._answer(404, b"") if found is None else self._answer(200, found)

        def do_POST(self) -> None:  # the name that http.server looks for
            length, index = self.headers.get("Content-Length", ""), _batch_number(self.path)
            known = self.path == "/envelopes" or index is not None
            if not known or not _is_small_number(length):
                self.close_connection = True
                self._answer(411 if known else 404, b"")
            elif int(length) > _LARGEST_BODY:
                self.close_connection = True
                self._answer(413, b"")
            elif index is not None:
                self._answer(200 if service.arrived(index, self.rfile.read(int(length))) else 403, b"")
                service.told()
            else:
                told = service.take(self.rfile.read(int(length)))
                self._answer(200, json.dumps(told).encode(), "application/json")

        def log_message(self, *_: object) -> None:
            """Nothing about a sender is written anywhere."""

        def _answer(self, status: int, body: bytes, kind: str = "application/octet-stream") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _server(where: tuple[str, int], service: Service) -> ThreadingHTTPServer:
    @final
    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A connection that broke off, or a fault: the library would write whose it was."""
            service.failed()

    return Server(where, _handler(service))


def _batch_number(path: str) -> int | None:
    index = path.removeprefix("/batches/")
    return int(index) if index != path and _is_small_number(index) else None


def _is_small_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9


def _loopback(host: str) -> str:
    try:
        inside = host == "localhost" or ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        inside = False
    if not inside:
        raise InvalidParameterError(
            f"The demonstration shuffler serves this machine only, not {str(host)[:60]!r}.",
            fix="use 127.0.0.1, and put a transport with authentication in front of it.",
        )
    return "127.0.0.1" if host == "localhost" else host


def _port(port: int) -> int:
    if whole("port", port) > 65535:
        raise InvalidParameterError("A port is at most 65535.", fix="pass 0 for any free one.")
    return port
