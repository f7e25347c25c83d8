"""Devices and analysers talking to a shuffler over HTTP."""

import http.client
import json
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from defocus.errors import InvalidParameterError, ShufflerUnavailableError
from defocus.local.shuffling.rounds import Round

__all__ = ["acknowledge", "ask", "fetch", "send"]

_AT_ONCE = 1 << 19
"""Bytes of one request: half of what the shuffler takes."""
_PATIENCE = 10.0
"""Seconds to wait for an answer on this machine."""


def ask(address: str) -> Round:
    """The round that the shuffler at ``address`` runs. Check its keys with whoever is known to hold them."""
    return Round.from_json(_called(address, "GET", "/")[1])


def send(address: str, envelopes: Iterable[bytes]) -> dict[str, int]:
    """Send envelopes, a few thousand at once; how many were accepted and rejected."""
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
    """A sealed batch, or None while the shuffler waits for more reports."""
    status, body = _called(address, "GET", f"/batches/{int(index)}")
    return body if status == 200 else None


def acknowledge(address: str, receipt: bytes, index: int = 0) -> bool:
    """Tell the shuffler that a batch arrived and could be opened, by ``Analyser.receipt``; whether it believes it."""
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
