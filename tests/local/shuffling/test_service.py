"""The shuffler as a process: over HTTP on this machine."""

import contextlib
import http.client
import socket
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from tests.local.shuffling.making import parties, protocol_parties
from tests.waiting import HANGS

from defocus.errors import InvalidParameterError, ShufflerUnavailableError
from defocus.local import oracle
from defocus.local.domains import Categories, Interval
from defocus.local.shuffling import (
    Analyser,
    Crowds,
    MultiMessageHistogram,
    MultiMessageSum,
    Service,
    acknowledge,
    ask,
    fetch,
    send,
    serving,
)
from defocus.local.shuffling import service as module
from defocus.local.shuffling import service as sending


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is dropped because this machine is slow."""
    monkeypatch.setattr(module, "_PATIENCE", HANGS)


def connected(address: str) -> socket.socket:
    return socket.create_connection((str(urlsplit(address).hostname), int(urlsplit(address).port or 0)), timeout=HANGS)


def dropped(client: socket.socket) -> bool:
    """Whether the shuffler ends the connection without an answer."""
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"G",
        b"POST /envelopes HTTP/1.1\r\nContent-Length: 1048576\r\n\r\nhalf",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 8000,
        b"GET /batches/0 HTTP/1.1\r\n\r\n",
    ],
    ids=["idle", "a letter", "half a body", "half a head", "who does not read"],
)
def test_hundreds_of_connections_that_say_nothing_hold_up_nobody(said: bytes) -> None:
    described, mixer, _ = parties(users=3)
    envelopes = described.envelopes(oracle("k-rr", 4, 2).encode([1] * 2003))
    with serving(mixer) as service, contextlib.ExitStack() as undo:
        assert send(service.address, envelopes[:2000])["accepted"] == 2000
        before = threading.active_count()
        for _ in range(400):
            client = undo.enter_context(connected(service.address))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            with contextlib.suppress(ConnectionError):  # of those whose place others took already
                client.sendall(said)
        assert send(service.address, envelopes[2000:]) == {"accepted": 3, "rejected": 0}
        assert ask(service.address) == described
        assert threading.active_count() - before < 40
        assert len(service._open) <= 128


def test_whoever_has_waited_for_longest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    _, mixer, _ = parties()
    monkeypatch.setattr(module, "_CONNECTIONS", 4)
    with serving(mixer) as service, contextlib.ExitStack() as undo:
        clients = [undo.enter_context(connected(service.address)) for _ in range(4)]
        assert ask(service.address) == mixer.round
        assert dropped(clients[0])
        for client in clients[1:]:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert client.recv(15) == b"HTTP/1.1 200 OK"


def test_a_request_that_is_worked_on_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    _, mixer, _ = parties()
    monkeypatch.setattr(module, "_CONNECTIONS", 2)
    begun, end = threading.Event(), threading.Event()

    def take(_body: bytes) -> dict[str, int]:
        begun.set()
        end.wait(HANGS)
        return {"accepted": 1, "rejected": 0}

    with serving(mixer) as service, ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as undo:
        monkeypatch.setattr(service, "take", take)
        found = pool.submit(send, service.address, [b"envelope"])
        assert begun.wait(HANGS)
        clients = [undo.enter_context(connected(service.address)) for _ in range(6)]
        assert all(map(dropped, clients[:5]))
        end.set()
        assert found.result(HANGS) == {"accepted": 1, "rejected": 0}


def test_a_request_has_a_deadline_however_it_trickles_in(monkeypatch: pytest.MonkeyPatch) -> None:
    _, mixer, _ = parties()
    monkeypatch.setattr(module, "_PATIENCE", 0.2)
    with serving(mixer) as service, connected(service.address) as client:
        client.settimeout(0.05)
        ended = False
        while not ended:  # the test hangs where a connection without a request is kept
            try:
                client.sendall(b"x")
                ended = client.recv(1) == b""
            except TimeoutError:
                continue
            except ConnectionError:
                ended = True
        monkeypatch.setattr(module, "_PATIENCE", HANGS)
        assert ask(service.address) == mixer.round
    assert service.failures == 1


def test_a_head_without_end_is_dropped_before_it_is_read() -> None:
    _, mixer, _ = parties()
    with serving(mixer) as service, connected(service.address) as client:
        with contextlib.suppress(ConnectionError):
            client.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * (1 << 22))
        assert dropped(client)
        assert asked(service.address, "POST", "/envelopes", None, **{"Transfer-Encoding": "chunked"}) == 411


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "", "::1"])  # noqa: S104 - refused
def test_other_machines_are_not_served(host: str) -> None:
    _, mixer, _ = parties()
    with pytest.raises(InvalidParameterError, match="this machine only"):
        Service(mixer, host=host)


@pytest.mark.parametrize("answer", [(413, b""), (200, b"<html>"), (200, b"[]"), (200, b'{"accepted": "many"}')])
def test_who_does_not_answer_as_a_shuffler_is_none(answer: tuple[int, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_called", lambda *_: answer)
    with pytest.raises(ShufflerUnavailableError, match=r"To fix: [^\n]*sent again"):
        send("http://127.0.0.1:9", [b"envelope"])


def test_a_round_of_several_messages_with_users_who_drop_out() -> None:
    """Of 40 devices, five never come, five break off half-way, two send twice; the 30 of the round are complete."""
    asked_of = MultiMessageSum(Interval(0, 1), users=25, epsilon=3, delta=0.01, levels=2)
    described, mixer, reader = protocol_parties(asked_of, users=30)
    with serving(mixer, batches=1) as service:
        where = service.address
        devices = [ask(where).report(1) for _ in range(35)]
        for envelope in devices[:5]:
            with connected(where) as client:
                head = f"POST /envelopes HTTP/1.1\r\nContent-Length: {len(envelope)}\r\n\r\n".encode()
                client.sendall(head + envelope[: len(envelope) // 2])
            assert send(where, [envelope[: len(envelope) // 2]]) == {"accepted": 0, "rejected": 1}
        assert send(where, devices[5:34]) == {"accepted": 29, "rejected": 0}
        assert send(where, devices[5:7]) == {"accepted": 0, "rejected": 2}
        assert fetch(where) is None
        assert send(where, devices[34:] * 2) == {"accepted": 1, "rejected": 1}
        batch = fetch(where)
        assert batch is not None
        assert acknowledge(where, reader.receipt())
        assert service.finished.wait(HANGS)
    server = reader.count(batch)
    assert (server.users, server.messages, server.rejected) == (30, 30 * asked_of.messages_per_user, 0)
    assert abs(server.sum() - 30) < 8 * asked_of.error
    assert described.event == asked_of.event


_SILENT = """
import socket, sys
host, port, body = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3])
client = socket.create_connection((host, port))
client.sendall(b"POST /envelopes HTTP/1.1\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body[:-1])
print("sent", flush=True)
sys.stdin.read()
"""


def test_a_device_that_is_killed_before_its_last_byte_is_not_in_the_round() -> None:
    asked_of = MultiMessageHistogram(Categories.of(3), users=60, epsilon=3, delta=0.01)
    described, mixer, reader = protocol_parties(asked_of)
    with serving(mixer) as service:
        parts = urlsplit(service.address)
        words = [str(parts.hostname), str(parts.port), described.report(2).hex()]
        with subprocess.Popen(  # noqa: S603 -- this program
            [sys.executable, "-c", _SILENT, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as device:
            assert device.stdout is not None
            assert device.stdout.readline() == b"sent\n"
            assert send(service.address, [described.report(1) for _ in range(59)])["accepted"] == 59
            device.kill()
        for _ in range(100 * HANGS):  # the operating system ends its connection
            if service.failures:
                break
            time.sleep(0.01)
        assert service.failures == 1
        assert fetch(service.address) is None
        send(service.address, [described.report(1)])
        batch = fetch(service.address)
    assert batch is not None
    counts = reader.count(batch)
    assert counts.users == 60
    assert abs(counts.estimate().counts[1] - 60) < 8 * asked_of.error


def test_crowds_over_http() -> None:
    asked_of = Crowds(16, users=120, epsilon=1, delta=1e-6)
    _, mixer, reader = protocol_parties(asked_of)
    with serving(mixer) as service:
        described = ask(service.address)
        assert described.design == asked_of
        sent = [described.report(text) for text in ["often"] * 100 + ["once"] + ["seldom"] * 19]
        assert send(service.address, sent[:-1] * 2) == {"accepted": 119, "rejected": 119}
        assert fetch(service.address) is None
        send(service.address, sent[-1:])
        batch = fetch(service.address)
    assert batch is not None
    found = reader.count(batch).estimate()
    assert "often" in found.labels
    assert "once" not in found.labels
