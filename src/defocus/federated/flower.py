"""Federated training with Flower: a client mod, a strategy, and Flower's accountant on a ledger.

Two lines make an app private. At the clients, ``ClientApp(mods=[PrivateClient(plan, identity, members=…)])``; at the
server, ``PrivateTraining(plan, ledger).start(grid, arrays, num_rounds=plan.rounds)``. The rest of the app stays: its
train function gets the arrays and the configuration, and returns its arrays. As a mod of the whole app, and not of its
train function alone, it refuses what a server may ask beside it: evaluation, or a query.

Guarantee:
    As :mod:`defocus.federated.training_plan`: all rounds are charged before the first client is asked, and no round is
    begun beyond them. Clients take part only under their own plan, and in one series of runs in no more rounds than it
    says, whatever the server asks. Of a client's reply nothing but its clipped, noisy and masked integers leaves: no
    metrics, no counts, no error of the app. The name of a round's sum holds a number that each of its clients drew for
    it. So what other clients signed in an earlier round, such as another set of survivors, is not heard in this one.
Assumes:
    Flower keeps what a mod writes into ``context.state`` from one message of a series of runs to the next, and gives it
    to nobody. In a new series a client counts anew: that a server begins no second one is promised by its ledger, and
    by a client only if it has one of its own. ``members`` names the keys of real clients; where it is None, the server
    is believed about them.

Flower's own noise, to which :class:`LedgerAccountant` lends a ledger, is of floating-point numbers from a generator
that is not cryptographic. The ledger counts what Flower says it did.
"""

import hashlib
import logging
import math
import secrets
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import (
    DefocusError,
    InvalidParameterError,
    MissingExtraError,
    ProtocolError,
    TooFewPartiesError,
)
from defocus.federated.coordinator import Coordinator
from defocus.federated.identity import KEY, Identity, verified
from defocus.federated.messages import Kind
from defocus.federated.party import Party
from defocus.federated.sum_plan import SumPlan
from defocus.federated.training_plan import TrainingPlan
from defocus.ledger import Ledger, Receipt
from defocus.noise import system
from defocus.privacy import Budget, account
from defocus.privacy.events import Event, Gaussian, Sampled, compose
from defocus.privacy.units import Adjacency
from defocus.release.charge import charge

__all__ = ["LedgerAccountant", "Loopback", "PrivateClient", "PrivateTraining"]

_RECORD = "defocus"
_HELLO = 0
_PURPOSE = "federated training"
_log = logging.getLogger(__name__)


def _flwr(module: str = "app") -> Any:
    try:
        return import_module(f"flwr.{module}")
    except ImportError:
        raise MissingExtraError("Training with Flower", package="flwr", extra="federated") from None


@final
@dataclass(frozen=True, slots=True)
class PrivateClient:
    """A mod of a Flower client: it clips, encodes, adds a share of noise and masks what the client trained.

    Args:
        plan: what this client agrees to.
        identity: its key; or a function of Flower's context that gives it, where one app runs many clients.
        members: the public keys of all clients; None to believe the server.
        ledger: of this client's own people; charged with all rounds before it trains in a series for the first time. It
            stops what a server's ledger should: a second series.

    >>> plan = TrainingPlan(clients=10, rounds=5, clip=1.0, noise_multiplier=4.0)
    >>> PrivateClient(plan, Identity.generate(), members=None).plan.rounds
    5
    """

    plan: TrainingPlan
    identity: Identity | Callable[[Any], Identity] = field(repr=False)
    members: Container[bytes] | None = field(repr=False)
    ledger: Ledger | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.ledger is not None:
            _check_unit(self.ledger, self.plan.per_person)

    def __call__(self, message: Any, context: Any, call_next: Callable[[Any, Any], Any]) -> Any:
        """Answer one message of the server; what is refused is answered by an error in words."""
        app = _flwr()
        try:
            body = self._answered(message, context, call_next)
            answer = app.ConfigRecord({"body": body})
            return app.Message(app.RecordDict({_RECORD: answer}), reply_to=message)
        except DefocusError as problem:
            why = problem.what
        except Exception:  # noqa: BLE001  # rows may have been looked at: not even its kind is told
            why = "The client could not train."
        code = _flwr("common.constant").ErrorCode.MOD_FAILED_PRECONDITION
        return app.Message(app.Error(code=code, reason=why), reply_to=message)

    def _answered(self, message: Any, context: Any, call_next: Callable[[Any, Any], Any]) -> bytes:
        said = message.content.config_records.get(_RECORD)
        if said is None or said.get("plan") != self.plan.digest:
            raise ProtocolError("The server has another training plan than this client.")
        kept = context.state.config_records.setdefault(_RECORD, _flwr().ConfigRecord({"rounds": 0}))
        identity = self.identity if isinstance(self.identity, Identity) else self.identity(context)
        kind = said.get("kind")
        if kind == _HELLO and not self.plan.trusted:
            drawn = secrets.token_bytes(KEY)
            kept["nonce"] = drawn
            head = _hello(self.plan)
            return identity.signed(head, identity.public + drawn)[len(head) :]
        if kind == Kind.MASKED and self.plan.trusted:
            vector = self._trained(kept, message, context, call_next, said["clip"])
            return vector.astype("<i8").tobytes()
        if kind == Kind.KEYS and not self.plan.trusted:
            nonce = kept.pop("nonce", None)  # for one round
            plan = self._sum_plan(said)
            number = plan.parties.index(identity.public) + 1
            if nonce is None or _parts(said["nonces"])[number - 1] != nonce:
                raise ProtocolError("The server begins a round of another time.")
            kept["parties"], kept["nonces"], kept["length"] = said["parties"], said["nonces"], said["length"]
            party = Party(plan, number, identity)
            body = party.begin()
        elif "party" in kept and isinstance(said.get("body"), bytes) and not self.plan.trusted:
            plan = self._sum_plan(kept)
            party = Party.resumed(plan, plan.parties.index(identity.public) + 1, identity, kept["party"])
            del kept["party"]  # after an error there is none any more
            if party.due is Kind.INBOX:
                vector = self._trained(kept, message, context, call_next, said["clip"])
                party.bring(self.plan.noise(len(vector)).sample(vector))
            body = party.receive(said["body"])
        else:
            raise ProtocolError("A message came that is not due.")
        kept["party"] = party.kept()
        return body

    def _sum_plan(self, said: Any) -> SumPlan:
        """The sum of this round, if it is one that this client agreed to."""
        parties = _parts(said["parties"])
        if self.members is not None and not all(party in self.members for party in parties):
            raise ProtocolError("The server names a client that is none.")
        return _round_plan(self.plan, parties, int(said["length"]), _parts(said["nonces"]))

    def _trained(
        self, kept: Any, message: Any, context: Any, call_next: Callable[[Any, Any], Any], clip: float
    ) -> NDArray[np.int64]:
        """What the app makes of the model, as integers. Each time it is one of the rounds agreed on."""
        if kept["rounds"] >= self.plan.rounds:
            raise ProtocolError(f"This client agreed to {self.plan.rounds} rounds, which are over.")
        self.plan.checked(clip)
        app = _flwr()
        (name, before), *more = message.content.array_records.items()
        if more:
            raise ProtocolError("The server sends several models.")
        if self.ledger is not None and not kept["rounds"]:
            numbers = sum(int(each.size) for each in before.to_numpy_ndarrays())
            _charged(self.plan, self.plan.length(numbers), self.ledger, _PURPOSE)
        kept["rounds"] += 1
        records = {key: record for key, record in message.content.items() if key != _RECORD}
        message.content = app.RecordDict(records)
        held = before.to_numpy_ndarrays()
        with suppress(Exception):  # a client that fails, however it does, is not told from others
            reply = call_next(message, context)
            after = reply.content.array_records[name].to_numpy_ndarrays()
            if [each.shape for each in after] == [each.shape for each in held]:
                moved = [np.asarray(a, np.float64) - b for a, b in zip(after, held, strict=True)]
                return self.plan.encoded(moved, clip)
        return np.zeros(self.plan.length(sum(each.size for each in held)), np.int64)


def _hello(plan: TrainingPlan) -> bytes:
    """What a client signs with its key and nonce, so that nobody takes part under the key of another."""
    return b"defocus.training/1 hello" + plan.digest


def _parts(together: bytes) -> tuple[bytes, ...]:
    """Keys or nonces of several, as they travel in one record."""
    return tuple(together[i : i + KEY] for i in range(0, len(together), KEY))


def _round_plan(plan: TrainingPlan, parties: tuple[bytes, ...], length: int, nonces: tuple[bytes, ...]) -> SumPlan:
    """The sum of one round: with fewer clients than planned, fewer of them may still drop out."""
    gone = plan.clients - len(parties)
    if not 0 <= gone <= plan.dropouts:
        raise ProtocolError(f"{len(parties)} clients take part, but it takes {plan.clients - plan.dropouts}.")
    if len(nonces) != len(parties):
        raise ProtocolError("A message has the wrong length.")
    name = hashlib.sha256(b"defocus.training/1 round" + plan.digest + b"".join(nonces)).digest()
    return SumPlan(parties, length, plan.bits, plan.dropouts - gone, plan.colluding, name)


def _charged(plan: TrainingPlan, length: int, ledger: Ledger, purpose: str) -> Receipt:
    """The charge for all rounds: as what they are, or as their epsilon at the delta that is left."""
    event, left = plan.event(length), ledger.remaining().delta
    epsilon = float(account(event).epsilon(left)) if left else math.inf
    asked = Budget(epsilon, left) if epsilon < math.inf else None
    how = "the server is trusted with it" if plan.trusted else f"{plan.honest} of {plan.clients} shares are counted on"
    question = f"federated training: {plan.rounds} rounds, {length} numbers, noise: {how}"
    return charge(event, ledger=ledger, purpose=purpose, question=question, asked=asked)


@final
class PrivateTraining:
    """A Flower strategy: rounds of private sums, paid for in full before the first one.

    Args:
        plan: what was agreed on.
        ledger: charged when the first round begins; of the people at the clients.
        rate: how far the model goes along the mean change of the clients.
        purpose: why it is charged.
        patience: for how many seconds clients are waited for in each step beside training.

    >>> import tempfile
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> plan = TrainingPlan(clients=10, rounds=5, clip=1.0, noise_multiplier=4.0)
    >>> facts = {"unit": dp.user("client"), "budget": dp.Budget(3, 1e-5), "dataset": "clients"}
    >>> with dp.Ledger.open(f"{home.name}/l", **facts) as ledger:
    ...     PrivateTraining(plan, ledger)
    PrivateTraining(0 of 5 rounds)
    >>> home.cleanup()
    """

    def __init__(
        self,
        plan: TrainingPlan,
        ledger: Ledger,
        *,
        rate: float = 1.0,
        purpose: str = _PURPOSE,
        patience: float = 3600.0,
    ) -> None:
        _check_unit(ledger, plan.per_person)
        self.plan, self.rate, self.rounds, self.clip = plan, rate, 0, plan.clip
        self.receipt: Receipt | None = None
        self._ledger, self._purpose, self._patience = ledger, purpose, patience
        self._length = 0
        self._round: tuple[Any, Any, Coordinator | None, dict[int, int]] | None = None

    def __repr__(self) -> str:
        return f"PrivateTraining({self.rounds} of {self.plan.rounds} rounds)"

    def start(self, *given: Any, **named: Any) -> Any:
        """Run all rounds, as Flower's own strategies do; the arguments are those of ``Strategy.start``."""
        return _flwr("serverapp.strategy").Strategy.start(self, *given, **named)

    def summary(self) -> None:
        """Log what will be done."""
        _log.info("private training: %r", self.plan)

    def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Iterable[Any]:
        """Charge before the first round; and bring the sum of this one to where clients train."""
        self._round = None
        if self.rounds >= self.plan.rounds:
            _log.warning("the %d rounds that were paid for are over: no client is asked", self.plan.rounds)
            return []
        length = self.plan.length(sum(int(each.size) for each in arrays.to_numpy_ndarrays()))
        if self.receipt is None:
            self.receipt, self._length = _charged(self.plan, length, self._ledger, self._purpose), length
        if length != self._length:
            raise InvalidParameterError(
                f"A client would bring {length} numbers, and {self._length} were paid for.", fix="train one model."
            )
        self.rounds += 1
        config["server-round"] = server_round
        try:
            return (
                self._trusted_round(arrays, config, grid) if self.plan.trusted else self._summed(arrays, config, grid)
            )
        except DefocusError as problem:
            _log.warning("round %d is void: %s", server_round, problem.what)
            return []

    def aggregate_train(self, server_round: int, replies: Iterable[Any]) -> tuple[Any, None]:
        """The model after this round; None, and so the one before, if too few clients were left."""
        if self._round is None:
            return None, None
        (arrays, grid, coordinator, numbers), self._round = self._round, None
        before = arrays.to_numpy_ndarrays()
        try:
            if coordinator is None:
                total, parties = self._noisy(replies, self._length, numbers), 0
            else:
                total = self._opened(coordinator, numbers, grid, replies)
                parties = len(coordinator.survivors)
        except (TooFewPartiesError, ProtocolError) as problem:
            _log.warning("round %d is void: %s", server_round, problem.what)
            return None, None
        mean, self.clip = self.plan.decoded(total, parties, self.clip)
        step, place, after = self.rate * mean, 0, []
        for each in before:
            after.append((each + step[place : place + each.size].reshape(each.shape)).astype(each.dtype))
            place += each.size
        app = _flwr()
        made = dict(zip(arrays.keys(), (app.Array(np.asarray(each)) for each in after), strict=True))
        return app.ArrayRecord(made), None

    def configure_evaluate(self, *_: Any) -> list[Any]:
        """No client is asked: what it would say of its own data is not paid for."""
        return []

    def aggregate_evaluate(self, *_: Any) -> None:
        """Nothing was asked."""

    def _said(self, node: int, kind: int, more: dict[str, Any], records: dict[str, Any] | None = None) -> Any:
        app = _flwr()
        said = app.ConfigRecord({"plan": self.plan.digest, "kind": kind, **more})
        content = app.RecordDict({**(records or {}), _RECORD: said})
        return app.Message(content, dst_node_id=node, message_type="train")

    def _asked(self, grid: Any, messages: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        yield from _bodies(grid.send_and_receive(messages, timeout=self._patience))

    def _trusted_round(self, arrays: Any, config: Any, grid: Any) -> Iterable[Any]:
        """Ask each client with the probability that is charged, and tell nobody whom."""
        nodes = sorted(grid.get_node_ids())
        if len(nodes) > self.plan.clients:  # who is left out would depend on who else is there
            raise ProtocolError(f"There are {len(nodes)} clients, and the plan is for {self.plan.clients}.")
        part, drawn = math.floor(self.plan.sampling * 2**64), system().words(len(nodes))
        asked = [node for node, word in zip(nodes, drawn, strict=True) if int(word) < part]
        self._round = arrays, grid, None, dict.fromkeys(asked, 0)
        records = {"arrays": arrays, "config": config}
        return (self._said(node, Kind.MASKED, {"clip": self.clip}, records) for node in asked)

    def _noisy(self, replies: Iterable[Any], length: int, asked: Container[int]) -> NDArray[np.int64]:
        total = np.zeros(length, np.int64)
        heard: set[int] = set()
        for node, body in _bodies(replies):
            vector = np.frombuffer(body, "<i8").astype(np.int64) if len(body) == 8 * length else None
            if vector is not None and node in asked and node not in heard and self.plan.within(vector):
                total += vector
                heard.add(node)
        noisy: NDArray[np.int64] = self.plan.noise(length).sample(total)
        return noisy

    def _summed(self, arrays: Any, config: Any, grid: Any) -> Iterable[Any]:
        """The steps of the sum before clients train."""
        hello = [self._said(node, _HELLO, {}) for node in grid.get_node_ids()]
        said = dict(self._introduced(self._asked(grid, hello)))
        known = list({said[node][:KEY]: node for node in sorted(said, reverse=True)}.values())
        chosen = [known[i] for i in np.argsort(system().words(len(known)))[: self.plan.clients]]
        parties, nonces = (tuple(said[node][part] for node in chosen) for part in (slice(KEY), slice(KEY, None)))
        plan = _round_plan(self.plan, parties, self._length, nonces)
        coordinator, numbers = Coordinator(plan), dict(enumerate(chosen, 1))
        facts = {"parties": b"".join(parties), "nonces": b"".join(nonces), "length": self._length}
        self._accept(coordinator, self._asked(grid, [self._said(node, Kind.KEYS, facts) for node in chosen]))
        self._accept(coordinator, self._asked(grid, self._turns(coordinator, numbers)))
        asked = self._turns(coordinator, numbers, {"arrays": arrays, "config": config})
        self._round = arrays, grid, coordinator, numbers
        return asked

    def _introduced(self, said: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """Keys and nonces of clients that signed them."""
        for node, body in said:
            try:
                verified(body[:KEY], _hello(self.plan), body[: 2 * KEY], body[2 * KEY :])
            except (ProtocolError, ValueError):
                _log.warning("client %d is left out: it does not show that its key is its own", node)
                continue
            yield node, body[: 2 * KEY]

    def _opened(
        self, coordinator: Coordinator, numbers: dict[int, int], grid: Any, replies: Iterable[Any]
    ) -> NDArray[np.int64]:
        """The steps of the sum after clients trained."""
        self._accept(coordinator, _bodies(replies))
        self._accept(coordinator, self._asked(grid, self._turns(coordinator, numbers)))
        self._accept(coordinator, self._asked(grid, self._turns(coordinator, numbers)))
        coordinator.advance()
        return coordinator.sum()

    def _turns(self, coordinator: Coordinator, numbers: dict[int, int], records: Any = None) -> list[Any]:
        said = coordinator.advance()
        due = int(coordinator.due or 0)
        more = {"clip": self.clip} if records else {}
        return [self._said(numbers[number], due, {"body": body, **more}, records) for number, body in said.items()]

    def _accept(self, coordinator: Coordinator, said: Iterable[tuple[int, bytes]]) -> None:
        for node, body in said:
            try:
                coordinator.accept(body)
            except ProtocolError as problem:
                _log.warning("client %d is left out: %s", node, problem.what)


def _check_unit(ledger: Ledger, clients: int) -> None:
    """Refuse a ledger of which a person is not what comes or goes with so many clients."""
    unit = ledger.unit
    whole = unit.kind == "user" or (unit.kind == "rows" and unit.per_person is not None and unit.per_person <= clients)
    if not whole or unit.period is not None or unit.adjacency is Adjacency.REPLACE:
        raise InvalidParameterError(
            f"This ledger protects {unit}, but federated training protects persons who come or go with all that their"
            f" {clients} client(s) train on.",
            fix='open the ledger with unit=dp.user("client"), and say per_person= in the plan where one has several.',
        )


def _bodies(replies: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
    """What clients say; whoever fails or says something else is passed over, as one who is gone."""
    for reply in replies:
        if reply.has_error():
            _log.warning("client %d: %s", reply.metadata.src_node_id, str(reply.error.reason)[:200])
            continue
        body = reply.content.config_records.get(_RECORD, {}).get("body")
        if isinstance(body, bytes):
            yield reply.metadata.src_node_id, body


@final
class LedgerAccountant:
    """Flower's ``PrivacyAccountant`` on a ledger: pass it as ``accountant=`` to Flower's own private strategies.

    Flower asks before each round whether it would exceed the budget, and composes it afterwards. The ledger is charged
    at the question, since afterwards is too late; composing takes what was charged. So a round that fails in between
    stays charged.

    Args:
        ledger: of the people at the clients, who are added or removed as its unit says.
        config: Flower's ``PrivacyConfig``; its ``max_epsilon`` must be set, for Flower asks only then.

    >>> LedgerAccountant.__name__
    'LedgerAccountant'
    """

    def __init__(self, ledger: Ledger, config: Any, *, purpose: str = _PURPOSE) -> None:
        if config.max_epsilon is None:
            raise InvalidParameterError(
                "Without max_epsilon, Flower composes rounds after they were released.",
                fix="set max_epsilon in PrivacyConfig; the ledger's own budget holds as well.",
            )
        _check_unit(ledger, 1)
        self._ledger, self._config, self._purpose = ledger, config, purpose
        self._paid: list[Event] = []
        self._composed: list[Event] = []

    @property
    def config(self) -> Any:
        """As it was given."""
        return self._config

    @property
    def num_releases(self) -> int:
        """How many rounds were composed."""
        return len(self._composed)

    def would_exceed(self, event: Any, max_epsilon: float | None = None, count: int = 1) -> bool:
        """Whether so many rounds do not fit; if they do, they are charged now."""
        owed, limit = self._event(event), self._config.max_epsilon if max_epsilon is None else max_epsilon
        together = [*self._composed, *self._paid, *[owed] * count]
        spent = self._epsilon(together, self._config.target_delta)
        if spent > limit or not self._ledger.admits(count * owed):
            return True
        charge(count * owed, ledger=self._ledger, purpose=self._purpose, question="a round of federated training")
        self._paid += [owed] * count
        return False

    def compose(self, event: Any, count: int = 1) -> None:
        """Note rounds as released: those that were charged, and any beyond are charged now."""
        owed = self._event(event)
        for _ in range(count):
            if owed in self._paid:
                self._paid.remove(owed)
            else:
                charge(owed, ledger=self._ledger, purpose=self._purpose, question="a round of federated training")
            self._composed.append(owed)

    def get_epsilon(self, delta: float) -> float:
        """Of all rounds so far, those that are charged and were not released included."""
        return self._epsilon([*self._composed, *self._paid], delta)

    def get_delta(self, epsilon: float) -> float:
        """Likewise."""
        events = [*self._composed, *self._paid]
        return float(account(compose(events)).delta(epsilon)) if events else 0.0

    def get_privacy_spent(self, delta: float | None = None) -> Any:
        """Likewise, as Flower reports it."""
        at = self._config.target_delta if delta is None else delta
        made = _flwr("supercore.privacy_accounting").PrivacySpent
        return made(self.get_epsilon(at), at, self.num_releases, "defocus pld")

    def state_dict(self) -> dict[str, object]:
        """How many rounds were composed, and of what; the ledger itself is on disk."""
        return {"releases": self.num_releases, "dataset": self._ledger.dataset}

    def load_state_dict(self, state: dict[str, object]) -> None:  # noqa: ARG002  # as Flower calls it
        """Refused: what was charged is in the ledger already, and is not charged or forgotten by a file."""
        raise InvalidParameterError(
            "The state of this accountant is its ledger.", fix="open the same ledger again, and pass it."
        )

    def _epsilon(self, events: Sequence[Event], delta: float) -> float:
        return float(account(compose(events)).epsilon(delta)) if events else 0.0

    def _event(self, said: Any) -> Event:
        sampling, plain = str(self._config.sampling_method.value), Gaussian(float(said.noise_multiplier))
        if sampling == "no-amplification":
            return plain
        if sampling == "poisson":
            return Sampled(plain, said.sample_size / said.population_size)
        raise InvalidParameterError(f"Sampling {sampling!r:.40} is not accounted for.", fix="pass no-amplification.")


@final
class Loopback:
    """A Flower grid in this process: it runs the app of each client in turn, and keeps of it what Flower would keep.

    Args:
        app: Flower's ``ClientApp``.
        clients: how many there are; each finds its number in ``context.node_config["partition-id"]``.
        silent: whether a message to a client is lost, for trying drop-outs.

    >>> PrivateTraining(plan, ledger).start(Loopback(app, clients=10), arrays)  # doctest: +SKIP
    """

    def __init__(self, app: Any, clients: int, silent: Callable[[int, Any], bool] | None = None) -> None:
        self._app, self._clients, self._silent = app, clients, silent or (lambda *_: False)
        self._states: dict[int, Any] = {}
        task = _flwr("supercore.task_identity").TaskIdentity
        task.run_id = task.node_id = task.task_id = 0  # messages are made for a run, of which this is one

    def get_node_ids(self) -> Iterable[int]:
        """The numbers of all clients, from 1."""
        return range(1, self._clients + 1)

    def send_and_receive(self, messages: Iterable[Any], *, timeout: float | None = None) -> Iterator[Any]:  # noqa: ARG002
        """The reply of one client after the other, each computed when it is taken."""
        for message in messages:
            node = message.metadata.dst_node_id
            if self._silent(node, message):
                continue
            app = _flwr()
            context = app.Context(
                run_id=0,
                node_id=node,
                node_config={"partition-id": node - 1},
                state=self._states.pop(node, None) or app.RecordDict(),
                run_config={},
            )
            yield self._app(message, context)
            self._states[node] = context.state
