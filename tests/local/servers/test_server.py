import hashlib
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local.making import small

from defocus.errors import InvalidParameterError, MismatchedOracleError, UnreadableDescriptionError
from defocus.local.clients import Client
from defocus.local.designs import NAMES, Design, design, numeric, to_json
from defocus.local.servers import Server, State
from defocus.local.servers.counts import _MAGIC
from defocus.local.servers.supports import walsh
from defocus.noise.testing import seeded


@pytest.mark.parametrize("name", NAMES)
def test_counts_do_not_depend_on_who_counted_what_and_when(name: str) -> None:
    made = small(name, 30, 1)
    reports = Client(made).encode(np.arange(3000) % 30, seeded(9))
    whole = Server(made)
    whole.add_reports(reports)
    parts = []
    for start in range(0, 3000, 1000):
        server = Server(made)
        server.add_many(list(reports)[start : start + 1000])
        parts.append(server.state())
    a, b, c = parts
    for merged in ((a + b) + c, a + (b + c), c + b + a):
        assert np.array_equal(merged.tally, whole.state().tally)
        assert merged.reports == 3000
    server = Server(made)
    for each in parts:
        server.merge(State.from_bytes(each.to_bytes()))
    assert np.array_equal(server.state().tally, whole.state().tally)


def test_memory_does_not_grow_with_reports() -> None:
    made = design("hadamard", 100, 1)
    server = Server(made)
    before = len(server.state().to_bytes())
    server.add_reports(Client(made).encode(np.arange(10_000) % 100, seeded(9)))
    assert len(server.state().to_bytes()) == before


def test_counts_of_another_oracle_are_refused() -> None:
    one, other = design("k-rr", 5, 1), design("k-rr", 5, 2)
    with pytest.raises(MismatchedOracleError, match="To fix: use the description"):
        Server(one).add_reports(Client(other).encode([1]))
    with pytest.raises(MismatchedOracleError):
        Server(one).merge(Server(other).state())
    with pytest.raises(MismatchedOracleError):
        Client(one).encode([1]) + Client(other).encode([1])


@given(st.integers(0, 400), st.integers(1, 255))
def test_counts_that_were_changed_are_refused(at: int, change: int) -> None:
    server = Server(design("k-rr", 5, 1))
    server.add(b"junk")
    data = bytearray(server.state().to_bytes())
    assert State.from_bytes(bytes(data)).rejected == {"truncated": 1}
    data[at % len(data)] ^= change
    with pytest.raises(UnreadableDescriptionError):
        State.from_bytes(bytes(data))
    with pytest.raises(UnreadableDescriptionError):
        State.from_bytes(bytes(data[:at]))


@given(st.integers(0, 6).flatmap(lambda k: st.lists(st.integers(-99, 99), min_size=1 << k, max_size=1 << k)))
def test_the_walsh_transform_is_its_own_inverse_and_has_the_signs_of_the_matrix(values: list[int]) -> None:
    x, n = np.array(values), len(values)
    signs = np.array([[(-1) ** (j & v).bit_count() for j in range(n)] for v in range(n)])
    assert np.array_equal(walsh(x), signs @ x)
    assert np.array_equal(walsh(walsh(x)), n * x)


def forged(head: bytes, tally: object) -> bytes:
    body = _MAGIC + len(head).to_bytes(8, "little") + head + np.asarray(tally).astype("<i8").tobytes()
    return body + hashlib.sha256(body).digest()


def described(made: Design, **rejected: float) -> bytes:
    return json.dumps({"design": to_json(made), "rejected": rejected}).encode()


@pytest.mark.parametrize(
    ("name", "tally"),
    [
        ("k-rr", [-5, 1, 1, 1, 2]),
        ("k-rr", [2**62] * 5),
        ("k-rr", [0] * 4),
        ("oue", [[3, 0, 0, 0, 0, 2]]),
        ("oue", [[0, 0, 0, 0, 0, -1]]),
        ("laplace", [-1, 0, 0, 0]),
        ("laplace", [1, 0, -1, 0]),
    ],
)
def test_counts_that_no_server_has_are_refused(name: str, tally: object) -> None:
    made: Design = numeric(name, 0, 1, 1) if name == "laplace" else design(name, 5, 1)
    with pytest.raises(UnreadableDescriptionError):
        State.from_bytes(forged(described(made), tally))


def test_texts_that_are_no_counts_are_refused_and_nothing_else() -> None:
    made = design("k-rr", 5, 1)
    for head in (described(made, malformed=math.inf), described(made, malformed=-1), b"[" * 200_000, b"{}"):
        with pytest.raises(UnreadableDescriptionError):
            State.from_bytes(forged(head, np.zeros(5)))
    with pytest.raises(UnreadableDescriptionError):
        State.from_bytes(b"")


def test_counts_that_do_not_fit_into_64_bits_are_refused_and_do_not_wrap() -> None:
    made = design("k-rr", 5, 1)
    many = State.from_bytes(forged(described(made), [2**59] * 6))
    with pytest.raises(InvalidParameterError, match="64-bit"):
        many + many
    totals = numeric("laplace", 0, 1, 1)
    far = State.from_bytes(forged(described(totals), [1, 2**62, 0, 0]))
    with pytest.raises(InvalidParameterError, match="64-bit"):
        far + far


def test_an_oracle_with_more_counts_than_memory_is_refused() -> None:
    for name in ("k-rr", "hadamard"):
        with pytest.raises(InvalidParameterError, match=r"counts[^\n]*\nTo fix"):
            Server(design(name, (1 << 28) - 1, 1))
    for name in ("oue", "d-bit", "subset"):
        with pytest.raises(InvalidParameterError, match="bytes"):
            design(name, (1 << 28) - 1, 1)


def test_a_nonce_is_used_up_by_a_report_and_not_by_garbage() -> None:
    made = design("k-rr", 5, 1)
    message = Client(made).report(2, nonce=True)
    server = Server(made, replays=100)
    assert not server.add(message[:26] + b"\xff")
    assert server.add(message)
    assert not server.add(message)
    assert server.rejected == {"invalid": 1, "replayed": 1}
    assert server.add_many([message[:10] + bytes(16) + b"\xff", message[:10] + bytes(16) + message[26:]]) == 1


def test_reports_without_a_nonce_are_told_apart_from_copies_and_counted_one_by_one() -> None:
    client, server = Client(design("k-rr", 5, 1)), Server(design("k-rr", 5, 1), replays=100)
    assert not server.add(client.encode([1] * 400).to_bytes())
    assert not server.add(client.report(1))
    assert server.add_records(b"".join(client.encode([1] * 7))) == 0
    assert server.rejected == {"no nonce": 408}
    batch = client.encode([1] * 400).to_bytes(nonce=True)
    assert server.add(batch)
    assert not server.add(batch)
    assert server.rejected == {"no nonce": 408, "replayed": 400}
    assert State.from_bytes(server.state().to_bytes()).rejected == server.rejected


def test_a_batch_draws_a_nonce_or_takes_one_of_16_bytes() -> None:
    reports = Client(design("k-rr", 5, 1)).encode([1, 2])
    assert reports.to_bytes(nonce=True)[10:26] != reports.to_bytes(nonce=True)[10:26]
    assert reports.to_bytes(nonce=bytes(16))[10:26] == bytes(16)
    assert len(reports.to_bytes(nonce=True)) == len(reports.to_bytes()) + 16
    with pytest.raises(InvalidParameterError, match=r"16 bytes[^\n]*\nTo fix: pass nonce=True"):
        reports.to_bytes(nonce=b"short")


@pytest.mark.parametrize("data", [b"abc", "abc", None])
def test_what_is_no_count_is_refused_as_such(data: object) -> None:
    with pytest.raises(
        UnreadableDescriptionError, match=r"counts of a server could not be read[^\n]*\nTo fix: pass what State"
    ):
        State.from_bytes(data)  # type: ignore[arg-type]


def test_a_server_says_what_it_has_counted() -> None:
    server = Server(design("k-rr", 5, 1))
    server.add_many([Client(server.design).report(1), b"junk"])
    assert repr(server) == "<server: 1 reports of k-rr counted, 1 rejected>"
