"""Messages between a coordinator and sites over TLS, each side known by its certificate; strict to read.

A frame is ``kind (1) | length (4) | body``. Whoever reads says which kinds may come and how long each may be, before
a byte of the body is read, and for how long it waits for the whole of it.
"""

import contextlib
import json
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, final

from defocus.errors import ProtocolError
from defocus.federated.membership import Member

__all__ = ["CONTROL", "Channel", "Frame", "context", "decoded", "encoded"]

CONTROL = 1 << 20
"""Bytes that a question or a refusal may have."""
_HEAD = 5


@final
class Frame(IntEnum):
    """What a frame holds."""

    CONTROL = 1
    """JSON: a question, an offer, a refusal, an answer."""
    BEGIN = 2
    """How many integers the next sum is over, 8 bytes, and the law and scale of its spare noise, if it has any."""
    SUM = 3
    """A message of a secure sum."""
    TOTAL = 4
    """The sum, eight bytes for each integer."""


def context(key: Path, own: Member, others: Sequence[Member], *, server: bool) -> ssl.SSLContext:
    """TLS 1.3 that shows this certificate, and accepts the certificates of these others and no authority's."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.check_hostname = False  # the certificate itself is compared: see Channel
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_cert_chain(own.certificate, key)
    for other in others:
        made.load_verify_locations(cadata=other.der)
    return made


@final
class Channel:
    """A connection to one member, whose certificate was compared byte by byte."""

    def __init__(self, connected: ssl.SSLSocket, peer: Member, patience: float) -> None:
        self._socket, self._patience = connected, patience
        if connected.getpeercert(binary_form=True) != peer.der:
            self.close()
            raise ProtocolError("Another than the expected member answers at this address.")

    def send(self, kind: Frame, body: bytes) -> None:
        """Send one frame."""
        deadline = time.monotonic() + self._patience
        left = memoryview(bytes([kind]) + len(body).to_bytes(4) + body)
        while left:  # sendall would wait anew after each part that the other side takes
            left = left[self._waited(deadline, self._socket.send, left) :]

    def say(self, said: Mapping[str, Any]) -> None:
        """Send JSON."""
        self.send(Frame.CONTROL, encoded(said))

    def receive(self, allowed: Mapping[Frame, int]) -> tuple[Frame, bytes]:
        """The next frame, if it is of one of these kinds and no longer than each may be."""
        deadline = time.monotonic() + self._patience
        head = self._exactly(_HEAD, deadline)
        length = int.from_bytes(head[1:])
        kind = next((kind for kind in allowed if kind == head[0]), None)
        if kind is None:
            raise ProtocolError("A message came that is not due.")
        if length > allowed[kind]:
            raise ProtocolError("A message is too long.")
        return kind, self._exactly(length, deadline)

    def hear(self, limit: int = CONTROL) -> dict[str, Any]:
        """The next frame, which is JSON."""
        return decoded(self.receive({Frame.CONTROL: limit})[1])

    def _exactly(self, length: int, deadline: float) -> bytes:
        found = bytearray()
        while len(found) < length:
            part = self._waited(deadline, self._socket.recv, min(length - len(found), 1 << 20))
            if not part:
                raise ProtocolError("The connection is lost.")
            found += part
        return bytes(found)

    def _waited(self, deadline: float, do: Callable[..., Any], given: Any) -> Any:
        """What a call of the socket gives until then."""
        left = deadline - time.monotonic()
        try:
            if left > 0:
                self._socket.settimeout(left)
                return do(given)
        except TimeoutError:
            pass
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            raise ProtocolError("The connection is lost.") from None
        except ssl.SSLError:
            raise ProtocolError(
                "It broke off: it may have other certificates in its federation file, or its clock may be wrong."
            ) from None
        except OSError:
            raise ProtocolError("The connection is lost.") from None
        raise ProtocolError("No whole message came or went in time.")

    def close(self) -> None:
        """End the connection; whoever waits for it is told."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def encoded(said: Mapping[str, Any]) -> bytes:
    """JSON in one spelling."""
    return json.dumps(said, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode()


def decoded(body: bytes) -> dict[str, Any]:
    """What :func:`encoded` wrote, and nothing else: no other spelling, no name twice, no lone surrogate, no NaN.

    >>> decoded(b'{"a":1}')
    {'a': 1}
    """
    try:
        said = json.loads(body.decode())
        if isinstance(said, dict) and encoded(said) == body:
            return said
    except (ValueError, RecursionError):
        pass
    raise ProtocolError("A message is no message of a federation.")
