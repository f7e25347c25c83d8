"""Sites and a coordinator under attack, over TLS on this machine: refused and named, and the others go on."""

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.federated.processes import free_ports
from tests.waiting import HANGS

import defocus as dp
from defocus.errors import DefocusError, InvalidParameterError, ProtocolError, TooFewPartiesError
from defocus.federated import Party, party, remote, site
from defocus.federated.lockstep import Hub
from defocus.federated.membership import identity_at, make_identity, read_membership, read_site
from defocus.federated.secret_sharing import divided
from defocus.federated.site import Site, asking
from defocus.federated.transport import Channel, Frame, context, decoded, encoded
from defocus.tables import Table
from defocus.tables.answers import to_record

NAMES = ("north", "south", "east", "west", "centre")
SQL = "SELECT COUNT(*) AS n FROM visits"
QUESTION = {"sql": SQL}


def declared(home: Path, names: tuple[str, ...], *, patience: int = 20) -> Path:
    """A federation of these sites, each with its file, on ports of this machine."""
    make_identity("coordinator", home)
    said = ["dropouts = 1", f"patience = {patience}", '[coordinator]\ncertificate = "coordinator.pem"']
    for name, port in zip(names, free_ports(len(names)), strict=True):
        make_identity(name, home)
        said.append(f'[sites.{name}]\naddress = "127.0.0.1:{port}"\ncertificate = "{name}.pem"')
        (home / f"{name}.toml").write_text(
            f'name = "{name}"\nfederation = "federation.toml"\ndataset = "none.toml"\nkey = "{name}.key"\n'
        )
    (home / "federation.toml").write_text("\n".join(said))
    return home / "federation.toml"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("federation")
    declared(folder, NAMES)
    return folder


@pytest.fixture(scope="module")
def serving(home: Path) -> Iterator[dict[str, Site]]:
    """Five sites, each in a thread of its own, with 200 people each."""
    tables: list[Table] = []
    made = {}
    for name in NAMES:
        rows = pa.table({"patient": [f"{name}-{i}" for i in range(200)], "days": [i % 20 for i in range(200)]})
        facts: dict[str, Any] = {"unit": dp.user("patient"), "budget": dp.Budget(10_000, 1e-3), "name": "visits"}
        long = pa.table({"days": list(range(20)), "long": [day > 14 for day in range(20)]})
        facts |= {"columns": {"days": (0, 20)}, "public": {"stays": long}}
        opened = dp.open(rows, ledger=home / f"{name}.ledger", **facts)
        tables.append(opened)
        made[name] = Site(read_site(home / f"{name}.toml"), opened.bound(rows=1))
        threading.Thread(target=made[name].serve, daemon=True).start()
    yield made
    for each in made.values():
        each.close()
    for opened in tables:
        opened.close()


def idle(*sites: Site) -> bool:
    """Whether each has ended what it was asked, for which it is given time."""
    until = time.monotonic() + 20
    while any(each._busy.locked() for each in sites) and time.monotonic() < until:
        time.sleep(0.01)
    return not any(each._busy.locked() for each in sites)


@pytest.fixture
def sites(serving: dict[str, Site]) -> dict[str, Site]:
    """The same, when what was asked in another test has ended everywhere."""
    assert idle(*serving.values())
    return serving


@pytest.fixture
def charges(sites: dict[str, Site]) -> Callable[[], dict[str, int]]:
    def found() -> dict[str, int]:
        ledgers = {name: each._table.ledger for name, each in sites.items()}
        return {name: sum(e.kind == "charge" for e in ledger.entries()) for name, ledger in ledgers.items()}

    return found


def asked(home: Path, epsilon: float = 10) -> Any:
    return dp.federation(home / "federation.toml").sql(SQL, epsilon=epsilon)


def told(answer: Any) -> str:
    return " ".join(map(str, answer.rules))


@contextlib.contextmanager
def coordinator_at(home: Path, number: int = 1) -> Iterator[Channel]:
    """A connection of the coordinator's own, to say what it should not."""
    known = read_membership(home / "federation.toml")
    made = context(home / "coordinator.key", known.coordinator, known.sites, server=False)
    member = known.sites[number - 1]
    with socket.create_connection((member.host, member.port), timeout=HANGS) as plain:
        channel = Channel(made.wrap_socket(plain), member, HANGS)
        try:
            yield channel
        finally:
            channel.close()


def question(home: Path, **changes: Any) -> dict[str, Any]:
    price = {"epsilon": 1, "delta": None, "purpose": None, "who": None}
    return asking(read_membership(home / "federation.toml"), "ask", QUESTION, **price) | changes


@pytest.mark.parametrize("keys", [[True, False], None])
def test_a_table_that_all_declare_is_joined_and_keys_are_not_found_over_the_wire(
    home: Path, sites: dict[str, Site], keys: Any
) -> None:
    assert sites
    together = dp.federation(home / "federation.toml").rename({"days": "stay"})
    joined = together.join("stays", on={"stay": "days"}).group_by("long", keys=keys).agg(n=dp.count())
    if keys is None:
        with pytest.raises(TooFewPartiesError, match=r"groups|keys"):
            joined.release(epsilon=10, delta=1e-6)
        return
    assert joined.release(epsilon=10)["n"].values == pytest.approx([750, 250], abs=20)
    with pytest.raises(TooFewPartiesError, match="joins a table that was not declared"):
        together.join("/etc/passwd", on="stay").agg(n=dp.count()).preview(epsilon=1)


def test_a_question_right_after_an_answer_is_answered_by_all_and_one_beside_another_is_refused(
    home: Path, sites: dict[str, Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site is slow after it sent its answer: the next question waits for it, but not for ever."""
    plain = Site._take_part

    def slow(self: Site, *given: Any) -> None:
        plain(self, *given)
        time.sleep(0.3 if self is sites["north"] else 0)

    monkeypatch.setattr(Site, "_take_part", slow)
    assert [told(asked(home)).count("took no part") for _ in range(2)] == [0, 0]
    assert idle(*sites.values())
    monkeypatch.setattr(site, "_ENDS_WITHIN", 0.05)
    with sites["north"]._busy:
        assert "north took no part to the end, and its rows are not in these numbers: it is answering another" in (
            told(asked(home))
        )


def test_strangers_who_hold_connections_open_keep_nobody_out(home: Path, sites: dict[str, Site]) -> None:
    known = read_membership(home / "federation.toml").sites[0]
    held: list[socket.socket] = []
    try:
        while len(held) < 2 * site._STRANGERS:
            held += [socket.create_connection((known.host, known.port), timeout=HANGS)]
        assert "took no part" not in told(asked(home))
        assert len(sites["north"]._strangers) <= site._STRANGERS
    finally:
        for each in held:
            each.close()


def test_a_site_listens_on_after_a_connection_that_cannot_be_taken(
    home: Path, sites: dict[str, Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    listening, left = sites["south"]._listening, [ConnectionAbortedError, OSError]

    class Broken:
        def accept(self) -> Any:
            if left:
                raise left.pop()
            return listening.accept()

        def __getattr__(self, name: str) -> Any:
            return getattr(listening, name)

    monkeypatch.setattr(sites["south"], "_listening", Broken())
    for _ in range(2):  # the first wakes what waits on the socket itself
        assert "took no part" not in told(asked(home))
    assert not left


@pytest.mark.parametrize("changed", [5, 2, 1 << 24])
def test_a_site_that_announces_another_length_is_named_and_the_others_go_on(
    home: Path, sites: dict[str, Site], monkeypatch: pytest.MonkeyPatch, changed: int
) -> None:
    assert sites
    plain = site._Wire.exchange

    def lying(self: Any, number: int, plan: Any, message: bytes) -> Any:
        if number == 1 and self.begun != plan.session:
            self.begun = plan.session
            self.channel.send(Frame.BEGIN, changed.to_bytes(8))
        return plain(self, number, plan, message)

    monkeypatch.setattr(site._Wire, "exchange", lying)
    answer = asked(home)
    assert abs(answer["n"].values[0] - 800) < 20
    assert "north took no part to the end, and its rows are not in these numbers" in told(answer)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ((Frame.BEGIN, bytes(8)), "out of range"),
        ((Frame.BEGIN, b"\xff" * 8), "out of range"),
        ((Frame.BEGIN, b"\x01"), "out of range"),
        ((Frame.BEGIN, bytes(1025)), "too long"),
        ((Frame.BEGIN, (1).to_bytes(8)), "not in its form"),
        ((Frame.BEGIN, (1).to_bytes(8) + b"laplace 10/2"), "not in its form"),
        ((Frame.BEGIN, (1).to_bytes(8) + b"laplace 0"), "not in its form"),
        ((Frame.BEGIN, (1).to_bytes(8) + b"uniform 5"), "not in its form"),
        ((Frame.BEGIN, (1).to_bytes(8) + b"gaussian " + b"9" * 400), "not in its form"),
        ((Frame.BEGIN, (1).to_bytes(8) + b"laplace 5"), "not due"),
        ((Frame.SUM, bytes(2 << 20)), "too long"),
        ((Frame.SUM, bytes(99)), "not due"),
        ((Frame.TOTAL, bytes(8)), "not due"),
        ((Frame.CONTROL, b"{}"), "no reason"),
        ((Frame.CONTROL, b'{"do":"done"}'), "no reason"),
        ((Frame.CONTROL, b'{"do":"failed","why":"\\u001b[2J x"}'), r"\x1b[2J x"),
        (
            (Frame.CONTROL, b'{"do":"failed","why":"of kind text.\\n  SELECT\\n  ^^^^"}'),
            "rows are not in these numbers: of kind text",
        ),
        ((Frame.CONTROL, b"[" * 100_000), "no message of a federation"),
        ((Frame.CONTROL, b'{"answer":{},"do":"done","receipt":{}}'), "another one than that of most"),
    ],
)
def test_a_site_that_says_what_is_not_due_is_named_and_the_others_go_on(
    home: Path, sites: dict[str, Site], monkeypatch: pytest.MonkeyPatch, said: tuple[Frame, bytes], words: str
) -> None:
    assert sites
    plain = site._Wire.exchange

    def lying(self: Any, number: int, plan: Any, message: bytes) -> Any:
        if number == 1:
            self.channel.send(*said)
            self.channel.send(*said)
            raise ProtocolError("It has said enough.")
        return plain(self, number, plan, message)

    monkeypatch.setattr(site._Wire, "exchange", lying)
    monkeypatch.setattr(Site, "_answer", _silent_after(Site._answer))
    answer = asked(home)
    assert abs(answer["n"].values[0] - 800) < 20
    assert "north took no part to the end, and its rows are not in these numbers" in told(answer)
    assert words in told(answer)
    assert "\x1b" not in str(answer)
    assert "SELECT" not in told(answer)


def _silent_after(plain: Any) -> Any:
    """A site that says nothing more after it said too much."""

    def answer(self: Any, channel: Channel) -> None:
        say = channel.say

        class Quiet:
            def __getattr__(self, name: str) -> Any:
                return getattr(channel, name)

            def say(self, what: dict[str, Any]) -> None:
                if what["do"] != "failed":
                    say(what)

        plain(self, Quiet())

    return answer


def test_a_site_that_says_another_answer_is_named(
    home: Path, sites: dict[str, Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sites
    plain, first = to_record, threading.Lock()

    def lying(answer: Any) -> Any:
        record = plain(answer)
        return {**record, "question": "another"} if first.acquire(blocking=False) else record

    monkeypatch.setattr("defocus.federated.site.to_record", lying)
    answer = asked(home)
    assert abs(answer["n"].values[0] - 1000) < 20
    assert "its rows are in these numbers: its answer is another one than that of most sites" in told(answer)
    numbers = iter(range(9))
    monkeypatch.setattr(
        "defocus.federated.site.to_record", lambda answer: {**plain(answer), "question": str(next(numbers))}
    )
    with pytest.raises(ProtocolError, match="no answer is that of most"):
        asked(home)


def test_a_coordinator_that_tells_sites_different_things_gets_no_sum(
    home: Path, sites: dict[str, Site], monkeypatch: pytest.MonkeyPatch, charges: Callable[[], dict[str, int]]
) -> None:
    """Other survivors, other nonces, another question: each brings the sites into different sums."""
    assert sites
    plain = Channel.say
    for change in (
        lambda said: said | {"nonces": [*said["nonces"][:-1], ""]} if said["do"] == "go" else said,
        lambda said: said | {"nonces": [*said["nonces"][:-1], "a" * 64]} if said["do"] == "go" else said,
        lambda said: said | {"epsilon": 9} if said["do"] == "ask" else said,
    ):
        turn = iter(range(20))

        def lying(self: Any, said: Any, change: Any = change, turn: Any = turn) -> None:
            plain(self, change(said) if said["do"] in {"go", "ask"} and next(turn) % 2 else said)

        monkeypatch.setattr(Channel, "say", lying)
        with pytest.raises(DefocusError):
            asked(home)
    monkeypatch.setattr(Channel, "say", plain)
    before = charges()
    assert abs(asked(home)["n"].values[0] - 1000) < 20
    assert charges() == {name: number + 1 for name, number in before.items()}


def test_what_was_said_for_an_earlier_question_opens_nothing(
    home: Path, sites: dict[str, Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sites
    heard: list[tuple[int, bytes]] = []
    plain = Hub.exchange

    def noting(self: Any, number: int, plan: Any, message: bytes) -> Any:
        heard.append((number, message))
        return plain(self, number, plan, message)

    monkeypatch.setattr(Hub, "exchange", noting)
    asked(home)
    old = [message for number, message in heard if number == 1]

    def replaying(self: Any, number: int, plan: Any, message: bytes) -> Any:
        return plain(self, number, plan, old.pop(0) if number == 1 and old else message)

    monkeypatch.setattr(Hub, "exchange", replaying)
    answer = asked(home)
    assert "north took no part to the end, and its rows are not in these numbers" in told(answer)
    assert "another sum" in told(answer)


@pytest.mark.parametrize("how", ["sealed", "key", "committed"])
def test_a_site_that_deals_wrong_shares_is_named_and_the_others_can_be_asked_without_it(
    home: Path, sites: dict[str, Site], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Its shares do not open, are those of another key, or not those that it promised: there is no sum."""
    assert sites
    share, mask, turn = Party._share, Party._mask, threading.Lock()

    def dealing(self: Party, body: memoryview) -> bytes:
        with turn, monkeypatch.context() as only:  # what is replaced is replaced in all threads
            if self._number == 4 and how == "sealed":
                only.setattr(Party, "_sealed_with", lambda *_: bytes(32))
            elif self._number == 4 and how == "key":
                only.setattr(party, "divided", lambda _, *more: divided(bytes(32), *more))
            elif self._number == 4:
                only.setattr(party, "commitment", lambda *_: bytes(32))
            return share(self, body)

    def masking(self: Party, body: memoryview) -> bytes:
        if self._number == 4 and how == "key":
            raise ProtocolError("It stops, so that its key is opened.")
        return mask(self, body)

    with monkeypatch.context() as lying:
        lying.setattr(Party, "_share", dealing)
        lying.setattr(Party, "_mask", masking)
        with pytest.raises(TooFewPartiesError) as refused:
            asked(home)
    assert "west dealt shares" in refused.value.what
    assert "arty 4" not in str(refused.value)
    assert "ask anew: without=['west']" in str(refused.value)
    again = dp.federation(home / "federation.toml", without=["west"])
    assert again.sql_query(SQL).preview(epsilon=10).columns[0].name == "n"
    answer = again.sql(SQL, epsilon=10)
    assert abs(answer["n"].values[0] - 800) < 20
    assert "west took no part to the end, and its rows are not in these numbers: the coordinator asks without it" in (
        told(answer)
    )
    with pytest.raises(TooFewPartiesError, match="the coordinator asks without it"):
        dp.federation(home / "federation.toml", without=["west", "east"]).sql(SQL, epsilon=10)
    with pytest.raises(InvalidParameterError, match="no site 'wets'"):
        dp.federation(home / "federation.toml", without=["wets"])


def test_one_site_that_accuses_another_has_it_not_left_out(
    home: Path, sites: dict[str, Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes more sites than may lie; here one says so, and another one is gone for a reason of its own."""
    assert sites
    plain, accused = site._Wire.exchange, [1]

    def lying(self: Any, number: int, plan: Any, message: bytes) -> Any:
        if number in accused:
            self.channel.say({"do": "failed", "why": "Party 2 dealt shares that do not open."})
        if number in {1, 5}:
            raise ProtocolError("It stops.")
        return plain(self, number, plan, message)

    monkeypatch.setattr(site._Wire, "exchange", lying)
    for both in (False, True):
        accused += [5] * both
        with pytest.raises(TooFewPartiesError) as refused:
            asked(home)
        assert "south dealt shares that do not open" in str(refused.value)
        assert ("without=['south']" in str(refused.value)) is both


def test_every_attempt_is_charged_at_every_site_that_is_asked(
    home: Path, sites: dict[str, Site], charges: Callable[[], dict[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks anew, with others left out, or voids a sum when it is known, averages what was paid for."""
    assert sites
    file, before = home / "federation.toml", charges()
    values = [dp.federation(file, without=[name]).sql(SQL, epsilon=0.01)["n"].values[0] for name in ("west", "east")]
    monkeypatch.setattr(remote._Round, "_agreed_answer", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        asked(home, 0.01)
    assert len({*values}) == 2  # other noise: of a scale of 100 and more
    assert {name: number - before[name] for name, number in charges().items()} == {
        name: 2 if name in {"west", "east"} else 3 for name in NAMES
    }


class Garbling:
    """A channel of which one frame goes out otherwise."""

    def __init__(self, channel: Channel, place: int, how: str, at: int) -> None:
        self._channel, self._left, self._how, self._at, self._last = channel, place, how, at, (Frame.SUM, b"")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def say(self, said: Any) -> None:
        self.send(Frame.CONTROL, encoded(said))

    def send(self, kind: Frame, body: bytes) -> None:
        self._left -= 1
        at = self._at % max(1, len(body))
        flipped = body[:at] + bytes([body[at] ^ 1 << self._at % 8]) + body[at + 1 :] if body else b"x"
        for each in (
            [(kind, body)]
            if self._left
            else {
                "cut": [(kind, body[:at])],
                "long": [(kind, body + bytes(1 + at))],
                "flipped": [(kind, flipped)],
                "twice": [(kind, body), (kind, body)],
                "again": [self._last],
                "none": [],
                "kind": [(Frame(1 + (kind + self._at % 3) % 4), body)],
                "huge": [(kind, bytes(3 << 20))],
            }.get(self._how, ())
        ):
            self._channel.send(*each)
        self._last = kind, body
        if not self._left and self._how in {"none", "broken"}:
            with contextlib.suppress(OSError, ProtocolError):
                if self._how == "broken":  # more is announced than comes
                    self._channel._socket.sendall(bytes([kind]) + (len(body) + 1).to_bytes(4) + body)
            self._channel.close()
            raise ProtocolError("It broke off.")


@pytest.mark.slow
@pytest.mark.parametrize("side", ["site", "coordinator"])
@given(
    st.tuples(
        st.integers(1, 8),
        st.sampled_from(["cut", "long", "flipped", "twice", "again", "none", "kind", "huge", "broken"]),
        st.integers(0, 5000),
    )
)
@settings(max_examples=45, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_frame_is_garbled_the_others_go_on_and_the_answer_says_whose_rows_are_in_it(
    home: Path, sites: dict[str, Site], side: str, garbling: tuple[int, str, int]
) -> None:
    """Cut, lengthened, with a flipped bit, repeated, of another kind, huge, or broken off: of one site, or for it."""
    begin, carry = Site._take_part, remote._Round._carried

    def begun(self: Any, channel: Any, *given: Any) -> None:
        begin(self, Garbling(channel, *garbling) if self is sites["north"] else channel, *given)  # type: ignore[arg-type]

    def carried(self: Any, number: int, hub: Hub) -> None:
        if number == 1:
            self._channels[number] = Garbling(self._channels[number], *garbling)
        carry(self, number, hub)

    with pytest.MonkeyPatch.context() as patch:
        if side == "site":
            patch.setattr(Site, "_take_part", begun)
        else:
            patch.setattr(remote._Round, "_carried", carried)
        answer = asked(home)
    out = "north took no part to the end, and its rows are not in these numbers" in told(answer)
    assert abs(answer["n"].values[0] - (800 if out else 1000)) < 20
    assert idle(sites["north"])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
changes = st.dictionaries(
    st.sampled_from(["do", "defocus", "federation", "question", "epsilon", "delta", "purpose", "who", "more"]),
    json_values | st.sampled_from(["1/0", "1/3", -1, 0, 1e308, 5e-324, 10**400, {"sql": SQL, "keys": "/etc/passwd"}]),
    min_size=1,
    max_size=2,
)


@given(changes)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_asked_is_refused_in_words_before_a_charge(
    home: Path, sites: dict[str, Site], charges: Callable[[], dict[str, int]], change: dict[str, Any]
) -> None:
    """Spoken to the site itself, without the network in between."""
    said: list[dict[str, Any]] = []

    waiting = [question(home) | change, {"do": "go", "nonces": [["a"], 3, None]}]

    class Heard:
        def hear(self) -> dict[str, Any]:
            return decoded(encoded(waiting.pop(0)))

        def say(self, what: dict[str, Any]) -> None:
            said.append(decoded(encoded(what)))

    before = charges()["north"]
    channel: Any = Heard()
    with contextlib.suppress(ProtocolError):
        sites["north"]._answer(channel)
    assert [one["do"] for one in said] in (["refused"], ["offer"])
    assert said[0].get("why", "x").strip()
    assert charges()["north"] == before
    assert not sites["north"]._busy.locked()


@pytest.mark.parametrize(
    "go",
    [
        {"do": "go", "nonces": ["", "", "", "", ""]},
        {"do": "go", "nonces": ["{own}", "a", "", "", ""]},
        {"do": "go", "nonces": ["{own}", "a", "b", "c"]},
        {"do": "go", "nonces": ["{own}", "a", "b", "c", 7]},
        {"do": "go", "nonces": ["0" * 64, "a", "b", "c", "d"]},
        {"do": "go", "nonces": ["{own}", "a", "b", "c", "d" * 65]},
        {"do": "go"},
        {"do": "stop"},
    ],
)
def test_a_beginning_that_is_none_is_no_beginning(
    home: Path, sites: dict[str, Site], charges: Callable[[], dict[str, int]], go: dict[str, Any]
) -> None:
    assert sites
    before = charges()["north"]
    with coordinator_at(home) as channel:
        channel.say(question(home))
        own = channel.hear()["nonce"]
        channel.say(json.loads(json.dumps(go).replace("{own}", own)))
        with pytest.raises(ProtocolError, match="lost"):
            channel.hear()
    assert charges()["north"] == before


@pytest.mark.parametrize(
    "frame",
    [
        b"\x01\xff\xff\xff\xff",
        b"\x01\x00\x20\x00\x00",
        b"\x09\x00\x00\x00\x00",
        b"\x03\x00\x00\x00\x01x",
        b"\x01\x00\x00\x00\x09{}",
        b"\x01\x00\x00\x00\x02[]",
        b'\x01\x00\x00\x00\x0e{"do":"\\ud800"}',
        b"\x01",
    ],
)
def test_frames_that_are_none_end_the_connection(home: Path, sites: dict[str, Site], frame: bytes) -> None:
    assert sites
    with coordinator_at(home) as channel:
        channel._socket.sendall(frame)
        with contextlib.suppress(OSError):
            channel._socket.unwrap()
        with pytest.raises((ProtocolError, OSError)):
            channel.hear()
    assert idle(sites["north"])


@given(st.binary(max_size=60) | json_values.map(lambda said: json.dumps(said).encode()))
@settings(max_examples=300, deadline=None)
def test_there_is_one_spelling_of_every_message(body: bytes) -> None:
    try:
        said = decoded(body)
    except ProtocolError:
        return
    assert encoded(said) == body


class Pieces:
    """A socket that gives what it has in pieces of a byte, and takes as little."""

    def __init__(self, given: bytes, der: bytes) -> None:
        self.given, self.der, self.taken = given, der, b""

    def getpeercert(self, *, binary_form: bool) -> bytes:
        assert binary_form
        return self.der

    def settimeout(self, seconds: float) -> None:
        assert 0 < seconds <= 20

    def recv(self, most: int) -> bytes:
        found, self.given = self.given[: min(1, most)], self.given[min(1, most) :]
        return found

    def send(self, body: bytes) -> int:
        self.taken += bytes(body[:1])
        return 1


@given(st.binary(max_size=40))
@settings(max_examples=200, deadline=None)
def test_whatever_bytes_come_a_frame_is_one_that_is_due_or_refused(home: Path, body: bytes) -> None:
    member = read_membership(home / "federation.toml").sites[0]
    given_: Any = Pieces(body, member.der)
    try:
        kind, found = Channel(given_, member, 20).receive({Frame.SUM: 9, Frame.BEGIN: 8})
    except ProtocolError:
        return
    assert (kind in {Frame.SUM, Frame.BEGIN}, len(found) <= 9) == (True, True)
    back: Any = Pieces(b"", member.der)
    Channel(back, member, 20).send(kind, found)
    assert body.startswith(back.taken)


def test_who_takes_a_byte_at_a_time_is_not_waited_for_longer_than_others(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = read_membership(home / "federation.toml").sites[0]
    clock = iter(range(10_000))
    monkeypatch.setattr("defocus.federated.transport.time.monotonic", lambda: next(clock) / 10)
    slow: Any = Pieces(b"", member.der)
    with pytest.raises(ProtocolError, match="in time"):
        Channel(slow, member, 20).send(Frame.SUM, bytes(1000))
    assert 150 < len(slow.taken) < 250  # one byte each tenth of a second


@given(st.data())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_sites_foresee_is_shown_or_refused(sites: dict[str, Site], data: st.DataObject) -> None:
    """One place of a preview holds something else."""
    table = sites["north"]._table
    seen = table.sql_query(SQL).preview(epsilon=1)
    columns = [column.to_dict() for column in seen.columns]
    shown = {"columns": columns, "question": seen.question, "event": {}, "rules": [], "foretold": []}
    place: Any = shown
    while isinstance(place, dict | list) and place:
        keys: Any = list(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            place[key] = data.draw(json_values | st.just("\x1b[2J"))
            break
        place = place[key]
    with contextlib.suppress(ProtocolError):
        text = str(remote._understood("a preview", lambda: remote._preview(shown)))
        assert "\x1b" not in text


@pytest.mark.parametrize("epsilon", [float("nan"), float("inf"), -1, 0, "1", None, True])
def test_a_price_that_is_none_is_refused_before_anybody_is_asked(home: Path, epsilon: Any) -> None:
    with pytest.raises(DefocusError):
        dp.federation(home / "federation.toml").sql_query(SQL).preview(epsilon=epsilon)
    with pytest.raises(InvalidParameterError, match="cannot be sent"):
        dp.federation(home / "federation.toml").sql("SELECT '\ud800'", epsilon=1)
    with pytest.raises(InvalidParameterError, match="cannot be sent"):
        dp.federation(home / "federation.toml").sql(SQL, epsilon=1, who="\udfff")


def test_a_certificate_that_is_not_there_is_told_from_one_that_is_none(tmp_path: Path) -> None:
    declared(tmp_path, ("a", "b"))
    (tmp_path / "b.pem").unlink()
    with pytest.raises(InvalidParameterError, match=r"There is no certificate 'b\.pem' beside"):
        dp.federation(tmp_path / "federation.toml")


def test_certificates_of_another_time_are_told_from_those_of_strangers(tmp_path: Path) -> None:
    """A certificate of the right key that was valid for a day, long ago."""
    import datetime as dt  # noqa: PLC0415

    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key  # noqa: PLC0415

    declared(tmp_path, ("a", "b", "c", "d"))
    old = load_pem_private_key((tmp_path / "a.key").read_bytes(), None)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a")])
    day = dt.datetime(2001, 1, 1, tzinfo=dt.UTC)
    made: Any = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(old.public_key())  # type: ignore[arg-type]
    made = made.serial_number(5).not_valid_before(day).not_valid_after(day + dt.timedelta(days=1))
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(old, None)
    (tmp_path / "a.pem").write_bytes(made.public_bytes(Encoding.PEM))
    table: Any = None
    late = Site(read_site(tmp_path / "a.toml"), table)
    threading.Thread(target=late.serve, daemon=True).start()
    try:
        with pytest.raises(TooFewPartiesError, match=r"a: Its certificate is not valid now.* c, d: it cannot"):
            dp.federation(tmp_path / "federation.toml").sql(SQL, epsilon=1)
    finally:
        late.close()


def test_a_member_speaks_for_itself_alone(home: Path, sites: dict[str, Site]) -> None:
    """A site's key does not make a coordinator, nor the site of another."""
    assert sites
    known = read_membership(home / "federation.toml")
    own, other = known.sites[:2]
    made = context(home / "south.key", other, [own], server=False)
    with (
        socket.create_connection((own.host, own.port), timeout=HANGS) as plain,
        made.wrap_socket(plain) as secured,
    ):
        channel = Channel(secured, own, HANGS)
        with pytest.raises(ProtocolError, match=r"broke off|lost"):  # whichever comes first
            channel.receive({})
    assert identity_at(home / "south.key").public == other.public
    mine = context(home / "coordinator.key", known.coordinator, [own], server=False)
    with (
        socket.create_connection((other.host, other.port), timeout=HANGS) as plain,
        pytest.raises((ProtocolError, ssl.SSLError)),
    ):
        Channel(mine.wrap_socket(plain), own, HANGS)
