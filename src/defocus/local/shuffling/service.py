"""The shuffler as a process of its own: HTTP on this machine, for demonstrations and tests.

======  ===============  ==========================================================================
GET     /                the round, as JSON
POST    /envelopes       one or more envelopes, one after the other; answers how many were accepted
GET     /batches/<i>     the i-th sealed batch, from 0; 404 while there is none
POST    /batches/<i>     that the analyser has it, by a receipt that nobody else can make; 403 for others
======  ===============  ==========================================================================

Addresses, headers and times of arrival are neither logged nor kept. A connection carries one request; one that says
nothing, or too slowly, holds up nobody else and is dropped, and memory for all of them is bounded. Only addresses of
this machine are served: a deployment puts its own transport, and whatever decides who may send, in front.
"""

import asyncio
import hmac
import http.client
import ipaddress
import json
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, TypeAlias, final
from urllib.parse import urlsplit

from defocus.errors import InvalidParameterError, ShufflerUnavailableError, whole
from defocus.local.shuffling.rounds import Round
from defocus.local.shuffling.shuffler import Shuffler

__all__ = ["Service", "acknowledge", "ask", "fetch", "send", "serving"]


_LARGEST_BODY = 1 << 20
"""Bytes of one request; more would be held in memory before anything is checked."""
_LONGEST_HEAD = 1 << 13
"""Bytes of a request before its body."""
_PIECE = 1 << 16
"""Bytes of an answer that are written at once."""
_PATIENCE = 10.0
"""Seconds that one has for all of a request, and again for all of the answer, however they come."""
_CONNECTIONS = 128
"""Connections at once. One more takes the place of the one that has kept the shuffler waiting for longest."""
_BYTES, _JSON = "application/octet-stream", "application/json"
_Task: TypeAlias = "asyncio.Task[Any]"


@final
class Service:
    """A shuffler behind a port. ``address`` tells where.

    >>> from defocus import examples
    >>> from defocus.local.shuffling import Shuffler
    >>> asked, described, ours, theirs = examples.shuffled(100)
    >>> with serving(Shuffler(described, ours)) as service:
    ...     print(type(service).__name__)
    Service
    """

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
        self._stopped = threading.Event()
        self._socket = socket.create_server((_loopback(host), _port(port)), backlog=_CONNECTIONS)
        self._address = self._socket.getsockname()
        self._open = set[_Task]()
        self._waiting = dict[_Task, None]()
        """Those of them whose other side has to send or to read, the longest first."""

    @property
    def address(self) -> str:
        """Where it listens."""
        host, port = self._address
        return f"http://{host}:{port}"

    def run(self) -> None:
        """Serve until :meth:`stop`."""
        asyncio.run(self._serve())

    def stop(self) -> None:
        """Serve no longer; connections that are open are dropped."""
        self._stopped.set()

    async def _serve(self) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: self.failed())  # the library would write whose
        server = await asyncio.start_server(self._connected, sock=self._socket, limit=_LONGEST_HEAD)
        await asyncio.to_thread(self._stopped.wait)
        server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of one connection. Who keeps it waiting is dropped in the end, or when others have no room."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # this is one
        self._open.add(task)
        self._waiting[task] = None
        if len(self._open) > _CONNECTIONS:
            longest = next(iter(self._waiting))
            self._forget(longest)
            longest.cancel()
        try:
            async with asyncio.timeout(_PATIENCE):
                asked = await _received(reader)
            self._waiting.pop(task, None)
            answer = await self._answer(*asked)
            self._waiting[task] = None
            async with asyncio.timeout(_PATIENCE):
                await _sent(writer, *answer)
            self.told()
            writer.close()
        except (Exception, asyncio.CancelledError):  # noqa: BLE001  # it broke off, it was dropped, or there is a fault
            writer.transport.abort()
            self.failed()
        finally:
            self._forget(task)

    def _forget(self, task: "_Task") -> None:
        self._open.discard(task)
        self._waiting.pop(task, None)

    async def _answer(self, method: str, path: str, body: bytes | int) -> tuple[int, bytes, str]:
        """Status, body and type of the answer to a request, whose body is a status where it was not read."""
        index = _batch_number(path)
        if method == "GET" and path == "/":
            return 200, self.shuffler.round.to_json().encode(), _JSON
        if method == "GET":
            batch = None if index is None else self.batch(index)
            return (404, b"", _BYTES) if batch is None else (200, batch, _BYTES)
        if isinstance(body, int):
            return body, b"", _BYTES
        if index is not None:
            return 200 if self.arrived(index, body) else 403, b"", _BYTES
        return 200, json.dumps(await asyncio.to_thread(self.take, body)).encode(), _JSON

    def take(self, body: bytes) -> dict[str, int]:
        """Accept envelopes laid end to end, and make a batch when there are enough."""
        length = self.shuffler.round.envelope_length
        cut = [body[i : i + length] for i in range(0, len(body), length)]
        accepted = sum(self.shuffler.accept(one) is None for one in cut)
        batch = self.shuffler.release()
        if batch is not None:
            with self._lock:
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
    """A service that runs in the background and stops at the end.

    >>> from defocus import examples
    >>> from defocus.local.shuffling import Shuffler
    >>> asked, described, ours, theirs = examples.shuffled(100)
    >>> with serving(Shuffler(described, ours)) as service:
    ...     print(service.address.startswith("http"))
    True
    """
    service = Service(shuffler, **how)
    thread = threading.Thread(target=service.run, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.stop()
        thread.join()


async def _received(reader: asyncio.StreamReader) -> tuple[str, str, bytes | int]:
    """Method, path and body of a request, or the status by which its body is refused; else a ValueError."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    lengths = [value.strip() for name, _, value in (line.partition(":") for line in lines) if _is_length(name)]
    if method != "POST":
        return method, path, 501
    if path != "/envelopes" and _batch_number(path) is None:
        return method, path, 404
    if len(lengths) != 1 or not _is_small_number(lengths[0]):
        return method, path, 411
    length = int(lengths[0])
    return method, path, await reader.readexactly(length) if length <= _LARGEST_BODY else 413


def _is_length(name: str) -> bool:
    return name.lower() in ("content-length", "transfer-encoding")


async def _sent(writer: asyncio.StreamWriter, status: int, body: bytes, kind: str) -> None:
    """Write an answer piece by piece, so that no copy of it waits for a slow reader, and wait until it has left."""
    fields = f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close"
    writer.transport.set_write_buffer_limits(0)
    writer.write(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{fields}\r\n\r\n".encode())
    for start in range(0, len(body), _PIECE):
        writer.write(body[start : start + _PIECE])
        await writer.drain()
    await writer.drain()


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


_AT_ONCE = 1 << 19
"""Bytes of one request: half of what the shuffler takes."""


def ask(address: str) -> Round:
    """The round that the shuffler at ``address`` runs. Check its keys with whoever is known to hold them.

    >>> from defocus import examples
    >>> from defocus.local.shuffling import Shuffler
    >>> asked, described, ours, theirs = examples.shuffled(100)
    >>> with serving(Shuffler(described, ours)) as service:
    ...     print(ask(service.address) == described)
    True
    """
    return Round.from_json(_called(address, "GET", "/")[1])


def send(address: str, envelopes: Iterable[bytes]) -> dict[str, int]:
    """Send envelopes, a few thousand at once; how many were accepted and rejected.

    >>> from defocus import examples
    >>> from defocus.local.shuffling import Shuffler
    >>> asked, described, ours, theirs = examples.shuffled(100)
    >>> with serving(Shuffler(described, ours)) as service:
    ...     print(send(service.address, described.envelopes(asked.encode([1] * 3))))
    {'accepted': 3, 'rejected': 0}
    """
    total = {"accepted": 0, "rejected": 0}
    for body in _bodies(envelopes):
        status, answer = _called(address, "POST", "/envelopes", body)
        if status != 200:
            raise ShufflerUnavailableError(f"refused envelopes, with status {status}")
        try:
            told = json.loads(answer)
            total = {name: number + int(told[name]) for name, number in total.items()}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ShufflerUnavailableError("did not answer as a shuffler does") from error
    return total


def fetch(address: str, index: int = 0) -> bytes | None:
    """A sealed batch, or None while the shuffler waits for more reports.

    >>> from defocus import examples
    >>> from defocus.local.shuffling import Shuffler
    >>> asked, described, ours, theirs = examples.shuffled(100)
    >>> with serving(Shuffler(described, ours)) as service:
    ...     print(fetch(service.address))
    None
    """
    status, body = _called(address, "GET", f"/batches/{int(index)}")
    return body if status == 200 else None


def acknowledge(address: str, receipt: bytes, index: int = 0) -> bool:
    """Tell the shuffler that a batch arrived and could be opened, by ``Analyser.receipt``; whether it believes it.

    >>> from defocus import examples
    >>> from defocus.local.shuffling import Analyser, Shuffler
    >>> asked, described, ours, theirs = examples.shuffled(3)
    >>> reader = Analyser(described, theirs)
    >>> with serving(Shuffler(described, ours)) as service:
    ...     _ = send(service.address, described.envelopes(asked.encode([1, 2, 3])))
    ...     batch = reader.count(fetch(service.address))
    ...     print(acknowledge(service.address, reader.receipt()))
    True
    """
    return _called(address, "POST", f"/batches/{int(index)}", receipt)[0] == 200


def _bodies(envelopes: Iterable[bytes]) -> Iterator[bytes]:
    held = bytearray()
    for envelope in envelopes:
        if held and len(held) + len(envelope) > _AT_ONCE:
            yield bytes(held)
            held.clear()
        held += envelope
    if held:
        yield bytes(held)


def _called(address: str, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    parts = urlsplit(address)
    if parts.scheme != "http" or not parts.hostname:
        raise InvalidParameterError(
            f"{address[:80]!r} is no address of a shuffler.", fix="write http://127.0.0.1:8080."
        )
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=_PATIENCE)
    try:
        connection.request(method, path, body=body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise ShufflerUnavailableError(f"could not be reached: {type(error).__name__}") from error
    finally:
        connection.close()
