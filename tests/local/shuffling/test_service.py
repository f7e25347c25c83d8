"""The shuffler as a process: over HTTP on this machine."""

import http.client
from urllib.parse import urlsplit

import pytest
from tests.local.shuffling.making import parties

from defocus.errors import DefocusError, InvalidParameterError
from defocus.local import oracle
from defocus.local.shuffling import Service, ask, fetch, send, serving


def asked(address: str, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=5)
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
        assert service.finished.wait(5)
        assert service.made == 1
        assert len(reader.open(batch).messages) == 50
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


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "", "::1"])  # noqa: S104 - refused
def test_other_machines_are_not_served(host: str) -> None:
    _, mixer, _ = parties()
    with pytest.raises(InvalidParameterError, match="this machine only"):
        Service(mixer, host=host)


def test_a_shuffler_that_is_not_there_is_told() -> None:
    with pytest.raises(DefocusError, match="could not be reached"):
        fetch("http://127.0.0.1:9")
    with pytest.raises(InvalidParameterError, match="no address"):
        fetch("ftp://127.0.0.1")
