"""The shuffler as a process: over HTTP on this machine."""

import http.client
import socket
import struct
import time
from urllib.parse import urlsplit

import pytest
from tests.local.shuffling.making import parties
from tests.waiting import HANGS

from defocus.errors import InvalidParameterError, ShufflerUnavailableError
from defocus.local import oracle
from defocus.local.shuffling import Analyser, Service, acknowledge, ask, fetch, send, sending, serving


def asked(address: str, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=HANGS)
    try:
        connection.request(method, path, body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_whole_round_over_http() -> None:
    described, mixer, reader = parties(users=50)
    source = oracle("k-rr", 4, 2)
    envelopes = described.envelopes(source.encode([3] * 50))
    with serving(mixer, batches=1) as service:
        assert ask(service.address) == described
        assert send(service.address, envelopes[:30]) == {"accepted": 30, "rejected": 0}
        assert fetch(service.address) is None
        assert send(service.address, [*envelopes[25:], b"junk"]) == {"accepted": 20, "rejected": 6}
        assert not service.finished.is_set()
        batch = fetch(service.address)
        assert batch is not None
        assert len(reader.open(batch).messages) == 50
        assert not service.finished.is_set()
        assert acknowledge(service.address, reader.receipt())
        assert service.finished.wait(HANGS)
        assert service.made == 1
        assert fetch(service.address, 1) is None


def test_strange_requests_are_answered_and_nothing_breaks() -> None:
    _, mixer, _ = parties()
    with serving(mixer) as service:
        where = service.address
        assert asked(where, "GET", "/secrets") == 404
        assert asked(where, "GET", "/batches/-1") == 404
        assert asked(where, "GET", "/batches/99999999999999999999") == 404
        assert asked(where, "POST", "/other", b"x") == 404
        assert asked(where, "POST", "/envelopes", b"x" * 10) == 200
        assert asked(where, "POST", "/envelopes", None, **{"Content-Length": "9999999"}) == 413
        assert asked(where, "POST", "/envelopes", None, **{"Content-Length": "many"}) == 411
        assert asked(where, "DELETE", "/") == 501
        assert ask(where) == mixer.round
    assert mixer.rejected == {"truncated": 1}


def test_nothing_about_a_sender_is_written(capfd: pytest.CaptureFixture[str]) -> None:
    _, mixer, _ = parties()
    with serving(mixer) as service:
        send(service.address, [b"junk"])
    assert capfd.readouterr() == ("", "")


def test_nothing_about_a_sender_is_written_when_the_connection_breaks(capfd: pytest.CaptureFixture[str]) -> None:
    described, mixer, _ = parties(users=3)
    with serving(mixer) as service:
        send(service.address, described.envelopes(oracle("k-rr", 4, 2).encode([1] * 2000)))
        host, port = str(urlsplit(service.address).hostname), int(urlsplit(service.address).port or 0)
        head = b"POST /envelopes HTTP/1.1\r\nHost: x\r\n"
        for request in (
            b"GET /batches/0 HTTP/1.1\r\nHost: x\r\n\r\n" * 50,
            head + b"Content-Length: 100\r\n\r\nabc",
            head,
            b"G",
        ):
            with socket.create_connection((host, port)) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close by a reset
                client.sendall(request)
                time.sleep(0.02)
        time.sleep(0.1)
        assert ask(service.address) == described
    assert capfd.readouterr() == ("", "")


def test_a_failure_of_any_kind_is_counted_and_not_told(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, mixer, _ = parties()
    with serving(mixer) as service:
        monkeypatch.setattr(service, "take", lambda _body: 1 // 0)
        with pytest.raises(ShufflerUnavailableError):
            send(service.address, [b"junk"])
        assert ask(service.address) == mixer.round
    assert service.failures == 1
    assert capfd.readouterr() == ("", "")


def test_only_the_analyser_ends_a_round_by_saying_what_only_it_knows() -> None:
    described, mixer, reader = parties(users=3)
    with serving(mixer, batches=1) as service:
        where = service.address
        send(where, described.envelopes(oracle("k-rr", 4, 2).encode([1] * 3)))
        assert fetch(where) is not None  # a stranger did
        for receipt in (b"", b"x" * 32, reader.receipt(1), Analyser(described, reader.key).receipt(7)):
            assert not acknowledge(where, receipt)
        assert asked(where, "POST", "/batches/9", reader.receipt(9)) == 403
        assert not service.finished.is_set()
        assert fetch(where) is not None
        assert acknowledge(where, reader.receipt())
        assert service.finished.wait(HANGS)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "", "::1"])  # noqa: S104 - refused
def test_other_machines_are_not_served(host: str) -> None:
    _, mixer, _ = parties()
    with pytest.raises(InvalidParameterError, match="this machine only"):
        Service(mixer, host=host)


def test_a_shuffler_that_is_not_there_is_told() -> None:
    with pytest.raises(ShufflerUnavailableError, match=r"could not be reached[^\n]*\nTo fix: check that it runs"):
        fetch("http://127.0.0.1:9")
    with pytest.raises(InvalidParameterError, match="no address"):
        fetch("ftp://127.0.0.1")


@pytest.mark.parametrize("answer", [(413, b""), (200, b"<html>"), (200, b"[]"), (200, b'{"accepted": "many"}')])
def test_who_does_not_answer_as_a_shuffler_is_none(answer: tuple[int, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_called", lambda *_: answer)
    with pytest.raises(ShufflerUnavailableError, match=r"To fix: [^\n]*sent again"):
        send("http://127.0.0.1:9", [b"envelope"])
