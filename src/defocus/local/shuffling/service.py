"""The shuffler as a process of its own: HTTP on this machine, for demonstrations and tests.

======  ===============  ==========================================================================
GET     /                the round, as JSON
POST    /envelopes       one or more envelopes, one after the other; answers how many were accepted
GET     /batches/<i>     the i-th sealed batch, from 0; 404 while there is none
======  ===============  ==========================================================================

Addresses, headers and times of arrival are neither logged nor kept. Only addresses of this machine are served: a
deployment puts its own transport, and whatever decides who may send, in front.
"""

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
_PATIENCE = 10.0


@final
class Service:
    """A shuffler behind a port. ``address`` tells where."""

    def __init__(
        self, shuffler: Shuffler, *, host: str = "127.0.0.1", port: int = 0, batches: int | None = None
    ) -> None:
        self.shuffler = shuffler
        self._batches: list[bytes] = []
        self._fetched: set[int] = set()
        self._lock = threading.Lock()
        self._wanted = batches
        self.finished = threading.Event()
        self._server = ThreadingHTTPServer((_loopback(host), _port(port)), _handler(self))
        self._server.daemon_threads = True

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
            if not 0 <= index < len(self._batches):
                return None
            self._fetched.add(index)
            return self._batches[index]

    def told(self) -> None:
        """An answer is on its way: finished, if as many batches as wanted were fetched."""
        with self._lock:
            if self._wanted is not None and len(self._fetched) >= self._wanted:
                self.finished.set()

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
            kind, _, index = self.path.removeprefix("/").partition("/")
            found = service.batch(int(index)) if kind == "batches" and _is_small_number(index) else None
            if found is None:
                self._answer(404, b"")
            else:
                self._answer(200, found)
                service.told()

        def do_POST(self) -> None:  # the name that http.server looks for
            length = self.headers.get("Content-Length", "")
            if self.path != "/envelopes" or not _is_small_number(length):
                self.close_connection = True
                self._answer(404 if self.path != "/envelopes" else 411, b"")
            elif int(length) > _LARGEST_BODY:
                self.close_connection = True
                self._answer(413, b"")
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
