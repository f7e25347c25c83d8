import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local.making import small

from defocus.local import wire
from defocus.local.clients import Client
from defocus.local.designs import NAMES, Categorical, design
from defocus.local.servers import Server
from defocus.noise.testing import seeded

DESIGNS = [small(name, 21, 1) for name in NAMES]


@pytest.mark.parametrize("made", DESIGNS, ids=NAMES)
def test_every_report_that_a_client_writes_is_read(made: Categorical) -> None:
    client, server, bits = Client(made), Server(made), seeded(5)
    for value in range(21):
        for nonce in (False, True):
            assert server.add(client.report(value, nonce=nonce, bits=bits))
            assert server.add(client.report_json(value, nonce=nonce, bits=bits))
    batch = client.encode(np.arange(21).repeat(100), bits)
    assert server.add(batch.to_bytes())
    assert server.add(batch.to_bytes(nonce=bytes(16)))
    assert server.add_many(iter(batch)) == 2100
    assert server.state().reports == 84 + 3 * 2100
    assert server.rejected == {}


@pytest.mark.parametrize("made", DESIGNS, ids=NAMES)
@given(data=st.binary(max_size=200), body=st.binary(max_size=60), kind=st.integers(0, 255))
def test_no_bytes_raise_an_error(made: Categorical, data: bytes, body: bytes, kind: int) -> None:
    server = Server(made, replays=10)
    server.add_many([data, bytes((1, kind)) + made.digest + body, memoryview(data)[::2]])
    server.add(data.decode("latin-1"))
    assert server.state().reports + sum(server.rejected.values()) >= 4


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_no_json_raises_an_error(value: object) -> None:
    made = DESIGNS[0]
    server = Server(made)
    whole = {"version": 1, "oracle": made.digest.hex(), "payload": "00"}
    for field in (*whole, "nonce"):
        server.add(json.dumps({**whole, field: value}))
    server.add(json.dumps(value))
    server.add("[" * 100_000)
    server.add(value)
    assert sum(server.rejected.values()) + server.state().reports == 7


@pytest.mark.parametrize("made", DESIGNS, ids=NAMES)
def test_every_fault_has_its_reason(made: Categorical) -> None:
    good = Client(made).report(3, bits=seeded(1))
    batch = Client(made).encode([1, 2, 3], seeded(1)).to_bytes()
    other = Client(design("k-rr", 4, 2)).report(1)
    cases: list[tuple[object, wire.Reason]] = [
        (good[:-1], "truncated"),
        (good[:9], "truncated"),
        (b"", "truncated"),
        (batch[:-1], "truncated"),
        (batch[:12], "truncated"),
        (good + b"\0", "oversized"),
        (batch + bytes(8), "oversized"),
        (b"\2" + good[1:], "version"),
        (good[:1] + b"\x07" + good[2:], "malformed"),
        (3.5, "malformed"),
        (None, "malformed"),
        ("{}", "malformed"),
        (other, "oracle"),
        (batch[:10] + b"\xff" * 8 + batch[18:], "truncated"),
    ]
    for message, reason in cases:
        server = Server(made)
        assert not server.add(message)
        assert server.rejected == {reason: 1}, message
        assert server.state().reports == 0


def test_a_report_that_no_client_makes_is_rejected_and_the_rest_of_its_batch_counted() -> None:
    for name, bad in (("k-rr", b"\x15"), ("oue", b"\0\0\x20")):
        made = design(name, 20, 1)
        good = Client(made).encode(np.arange(20), seeded(1))
        forged = wire.write(made, made.layout.payload(good.payload.tobytes() + bad))
        server = Server(made)
        assert not server.add(forged)
        assert server.rejected == {"invalid": 1}
        assert server.state().reports == 20
        single = bytes((1, 0)) + made.digest + bad
        assert server.add_many([single, next(iter(good))]) == 1
        assert server.rejected == {"invalid": 2}


def test_a_copy_of_a_message_is_rejected_when_asked_for() -> None:
    client = Client(design("k-rr", 5, 1))
    messages = [client.report(1, nonce=True, bits=seeded(i)) for i in range(10)]
    server = Server(client.design, replays=10)
    assert server.add_many(messages + messages) == 10
    assert server.rejected == {"replayed": 10}
    assert not server.add(client.report(1))
    small = Server(client.design, replays=3)
    assert small.add_many(messages + messages[-3:]) == 10
    careless = Server(client.design)
    assert careless.add_many(messages + messages) == 20


@pytest.mark.parametrize("made", DESIGNS, ids=NAMES)
def test_records_that_lie_one_after_the_other_are_counted_like_messages(made: Categorical) -> None:
    messages = list(Client(made).encode(np.arange(210) % 21, seeded(4)))
    one, other = Server(made), Server(made)
    assert one.add_records(b"".join(messages)) == other.add_many(messages) == 210
    assert np.array_equal(one.state().tally, other.state().tally)
    good = messages[0]
    faults = [b"\2" + good[1:], good[:1] + b"\1" + good[2:], good[:2] + b"\0" * 8 + good[10:], good[:-1]]
    server = Server(made)
    assert server.add_records(b"".join([good, *faults[:3], good, faults[3]])) == 2
    assert server.rejected == {"version": 1, "malformed": 1, "oracle": 1, "truncated": 1}
    assert Server(made).add_records(b"") == 0
    careful = Server(made, replays=5)
    assert careful.add_records(good + good) == 0
    assert careful.rejected == {"no nonce": 2}


@given(data=st.binary(max_size=400))
def test_no_records_raise_an_error(data: bytes) -> None:
    server = Server(DESIGNS[0])
    server.add_records(data)
    length = 10 + DESIGNS[0].layout.length
    assert server.state().reports + sum(server.rejected.values()) == -(-len(data) // length)


def test_a_record_that_no_client_makes_is_rejected() -> None:
    made = design("k-rr", 20, 1)
    good = Client(made).report(3)
    server = Server(made)
    assert server.add_records(good + good[:-1] + b"\x15") == 1
    assert server.rejected == {"invalid": 1}


def test_a_set_of_the_wrong_size_is_rejected() -> None:
    for name, width in (("subset", 16), ("d-bit", 16)):
        made = small(name, width, 1)
        good = Client(made).encode([1, 2], seeded(1)).payload
        forged = good.copy()
        forged[1] = 255
        server = Server(made)
        assert not server.add(wire.write(made, forged))
        assert server.rejected == {"invalid": 1}
        assert server.state().reports == 1
