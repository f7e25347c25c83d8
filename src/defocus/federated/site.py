r"""A site: beside its own data, ledger and policy, it answers what it can check itself.

The coordinator sends the text of a question and its price. The site makes its own plan of it, from its own dataset
file: sensitivities, noise and charge are its own, and nothing of them is taken from outside.

Guarantee:
    A site takes part in a sum only if it made the same plan as the others: the name of the sum is a digest of the
    question, the price, the plan, the federation, and a number that each site drew for this time. So what was signed
    for another question, or at another time, opens nothing. It charges its ledger before it computes, and what leaves
    is its vector with its share of noise behind masks. A refusal is made before any row is looked at.
Assumes:
    As :mod:`defocus.federated.federation`: of all sites, no more drop out or collude than the federation file says.
"""

import contextlib
import hashlib
import secrets
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus import tables
from defocus.errors import DefocusError, InvalidParameterError, ProtocolError
from defocus.federated.lockstep import Link, sum_plan
from defocus.federated.membership import Membership, SiteSettings, identity_at, read_site
from defocus.federated.sum_plan import SumPlan
from defocus.federated.transport import CONTROL, Channel, Frame, context, encoded
from defocus.mechanisms.noise_shares import SpareNoise
from defocus.privacy.wire import to_wire
from defocus.release.charge import admitted, spendable
from defocus.tables import Table
from defocus.tables.answers import to_record
from defocus.tables.dataset_file import read
from defocus.tables.query import Query
from defocus.tables.sql.query import SqlQuery
from defocus.tables.table_questions import lowered, number_of

__all__ = ["FACTS", "Site", "asking", "question_name", "serve_site"]

_STATUS = {"do", "defocus", "federation"}
_ASKED = {*_STATUS, "question", "epsilon", "delta", "purpose", "who"}
FACTS = {"question", "rules", "noise", "groups", "columns"}
"""In what the plans of sites are compared."""
_NONCE = 32
_STRANGERS, _KNOWN = 64, 8
"""How many connections may be open at once: of those who have not shown a certificate, and of the coordinator."""
_SHOWN_WITHIN = 10
"""Seconds in which a certificate is to be shown."""
_ENDS_WITHIN = 2
"""Seconds in which an answer that was sent, or a coordinator that is gone, ends a question: the next one waits."""


def asking(membership: Membership, do: str, question: Mapping[str, Any], **price: Any) -> dict[str, Any]:
    """A question as it is sent."""
    return {
        "do": do,
        "defocus": version("defocus"),
        "federation": membership.digest,
        "question": dict(question),
        **{name: price.get(name) for name in ("epsilon", "delta", "purpose", "who")},
    }


def question_name(ask: Mapping[str, Any], facts: Mapping[str, str], nonces: Sequence[str]) -> bytes:
    """What tells a question, asked now, from all others: it is new if one of the nonces is."""
    said = {"ask": dict(ask), "facts": dict(facts), "nonces": list(nonces)}
    return hashlib.sha256(b"defocus.federation/1" + encoded(said)).digest()


def serve_site(path: str | Path) -> None:
    """Answer questions of a federation, beside the data, until the process ends: ``serve_site("site.toml")``.

    The file says the name of the site, the federation file, the dataset file, its key, and the most that one question
    may cost here. It prints one line when it listens.

    >>> serve_site("nowhere.toml")
    Traceback (most recent call last):
    ...
    defocus.errors.base.InvalidParameterError: There is no file 'nowhere.toml'.
    To fix: write name, federation, dataset and key into it.
    """
    if not Path(path).is_file():
        raise InvalidParameterError(
            f"There is no file {Path(path).name!r:.80}.", fix="write name, federation, dataset and key into it."
        )
    settings = read_site(path)
    with tables.open(read(settings.dataset)) as table:
        site = Site(settings, table)
        print(f"listening on {settings.host}:{settings.port} as {settings.own.name}\n", end="", flush=True)  # noqa: T201
        site.serve()


@final
class Site:
    """Listens for questions of the coordinator, and answers one at a time. Made by ``defocus site --config``.

    Args:
        settings: what the file of the site says.
        table: its own table, with its own ledger.
    """

    def __init__(self, settings: SiteSettings, table: Table) -> None:
        self._settings, self._table = settings, table
        self._identity = identity_at(settings.key)
        self._tls = context(settings.key, settings.own, [settings.membership.coordinator], server=True)
        self._busy = threading.Lock()
        self._strangers: dict[socket.socket, None] = {}
        self._turn = threading.Lock()
        self._known = threading.BoundedSemaphore(_KNOWN)
        self._listening = socket.create_server(
            (settings.host, settings.port), family=socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        )

    def serve(self) -> None:
        """Answer until the site is closed."""
        while self._listening.fileno() >= 0:
            try:
                connected, _ = self._listening.accept()
            except OSError:  # it is closed; or a connection was gone before it was taken, or there are too many
                time.sleep(0.01)
                continue
            with self._turn:
                if len(self._strangers) >= _STRANGERS:  # the one that has waited longest makes room for this one
                    _shut(next(iter(self._strangers)))
                    del self._strangers[next(iter(self._strangers))]
                self._strangers[connected] = None
            threading.Thread(target=self._heard, args=(connected,), daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        _shut(self._listening)
        self._listening.close()

    def _heard(self, connected: socket.socket) -> None:
        try:
            connected.settimeout(_SHOWN_WITHIN)
            plain = connected.dup()  # who makes room for another is shut by the first name of it
            with self._tls.wrap_socket(plain, server_side=True) as secured:
                membership = self._settings.membership
                # The coordinator answers when the slowest site has spoken, for which it waits that long.
                channel = Channel(secured, membership.coordinator, 2 * membership.patience + 5)
                self._no_stranger(connected)
                if self._known.acquire(blocking=False):
                    try:
                        self._answer(channel)
                    finally:
                        self._known.release()
        except Exception:  # noqa: BLE001  # the other side is gone, or is nobody we know; nothing was promised to it
            return
        finally:
            self._no_stranger(connected)
            connected.close()

    def _no_stranger(self, connected: socket.socket) -> None:
        with self._turn:
            self._strangers.pop(connected, None)

    def _answer(self, channel: Channel) -> None:
        ask = channel.hear()
        if ask.get("do") == "status":
            try:
                self._check_same(ask, _STATUS)
                channel.say({"do": "status", "budget": self._table.ledger.words()})
            except DefocusError as problem:
                channel.say({"do": "refused", "why": problem.what})
            return
        if not self._busy.acquire(timeout=_ENDS_WITHIN):
            channel.say({"do": "refused", "why": "it is answering another question"})
            return
        try:
            asked, link, facts, preview = self._checked(ask)
        except DefocusError as problem:
            channel.say({"do": "refused", "why": problem.what})
            return
        except Exception as problem:  # noqa: BLE001  # whatever it is, no more is told than its kind
            channel.say({"do": "refused", "why": type(problem).__name__})
            return
        else:
            self._take_part(channel, ask, asked, (link, facts, preview))
        finally:
            self._busy.release()

    def _check_same(self, ask: Mapping[str, Any], parts: set[str]) -> None:
        """Refuse a question with other parts, from another version or federation."""
        if set(ask) != parts:
            raise ProtocolError("A message is no question of a federation.")
        if ask["defocus"] != version("defocus"):
            raise ProtocolError(f"It runs Defocus {version('defocus')}, and the coordinator another version.")
        if ask["federation"] != self._settings.membership.digest:
            raise ProtocolError("Its federation file is not that of the coordinator.")

    def _checked(self, ask: Mapping[str, Any]) -> tuple[Any, Link, dict[str, str], dict[str, Any]]:
        """This site's own plan of what is asked, or why it refuses."""
        membership, settings = self._settings.membership, self._settings
        self._check_same(ask, _ASKED)
        if ask["do"] not in {"ask", "preview"} or not isinstance(ask["question"], dict):
            raise ProtocolError("A message is no question of a federation.")
        for name in ("purpose", "who"):
            if ask[name] is not None and (not isinstance(ask[name], str) or len(ask[name]) > 400):
                raise ProtocolError(f"The {name} of a question is not a short text.")
        epsilon, delta = (number_of(ask[name]) for name in ("epsilon", "delta"))
        price = spendable(epsilon, delta)
        for name, limit, given in (
            ("epsilon", settings.most_epsilon, epsilon),
            ("delta", settings.most_delta, delta),
        ):
            if limit is not None and given is not None and given > limit:
                raise ProtocolError(f"Its policy allows no {name} above {float(limit):g} for one question.")
        circle = _Wire(membership)
        link = Link(circle, settings.number, self._identity, membership.honest, membership.overlap)
        asked = lowered(self._table, ask["question"])
        if not isinstance(asked, Query | SqlQuery):
            raise ProtocolError("A message is no question of a federation.")
        query = asked.query if isinstance(asked, SqlQuery) else asked
        together = replace(query, together=link)
        asked = replace(asked, query=together) if isinstance(asked, SqlQuery) else together
        seen = asked.preview(epsilon=epsilon, delta=delta)
        query.ledger.purpose_of(ask["purpose"], query.question)
        if admitted(seen.event, price, query.ledger) is None:
            raise ProtocolError("Its budget does not cover this.")
        own = {
            "question": seen.question,
            "rules": repr([str(rule) for rule in seen.rules]),
            "noise": encoded(to_wire(seen.event)).hex(),
            "groups": "" if query.keys is None else repr(query.keys.facts),
            "columns": repr(query.arrangement.aggregates),
        }
        facts = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in own.items()}
        shown = {
            "columns": [column.to_dict() for column in seen.columns],
            "question": seen.question,
            "event": to_wire(seen.event),
            "rules": [str(rule) for rule in seen.rules],
            "foretold": list(seen.foretold),
        }
        return asked, link, facts, shown

    def _take_part(
        self, channel: Channel, ask: Mapping[str, Any], asked: Any, planned: tuple[Link, dict[str, str], dict[str, Any]]
    ) -> None:
        link, facts, preview = planned
        nonce = secrets.token_hex(_NONCE)
        channel.say({"do": "offer", "nonce": nonce, "facts": facts, "preview": preview})
        if ask["do"] == "preview":
            return
        nonces = self._nonces(channel.hear(), nonce)
        wire = link.hub
        assert isinstance(wire, _Wire)  # noqa: S101  # made above
        wire.channel, wire.name = channel, question_name(ask, facts, nonces)
        epsilon, delta = (number_of(ask[name]) for name in ("epsilon", "delta"))
        try:
            answer = asked.release(epsilon=epsilon, delta=delta, purpose=ask["purpose"], who=ask["who"])
            told = {"do": "done", "answer": to_record(answer), "receipt": answer.receipt.to_dict()}
        except DefocusError as problem:
            told = {"do": "failed", "why": link.refused or problem.what}
        except Exception:  # noqa: BLE001  # rows may have been looked at: not even its kind is told
            told = {"do": "failed", "why": "it could not answer"}
        channel.say(told)

    def _nonces(self, said: Mapping[str, Any], own: str) -> list[str]:
        """The nonces of all sites that take part, of which this site's own is one, and which are enough."""
        membership, nonces = self._settings.membership, said.get("nonces")
        if set(said) != {"do", "nonces"} or said["do"] != "go" or not isinstance(nonces, list):
            raise ProtocolError("A message came that is not due.")
        if len(nonces) != len(membership.sites) or not all(isinstance(one, str) and len(one) <= 64 for one in nonces):
            raise ProtocolError("A message has the wrong length.")
        if nonces[self._settings.number - 1] != own:
            raise ProtocolError("The coordinator begins a question of another time.")
        if sum(map(bool, nonces)) < len(nonces) - membership.dropouts:
            raise ProtocolError("Too few sites take part.")
        return nonces


def _shut(connected: socket.socket) -> None:
    """Whoever waits for it is told, in any thread."""
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


@final
@dataclass(slots=True)
class _Wire:
    """The others, as a site reaches them: by the coordinator, at the other end of a connection."""

    membership: Membership
    channel: Channel | None = None
    name: bytes = bytes(32)
    failure: DefocusError | None = None
    survivors: frozenset[int] = frozenset()
    begun: bytes = b""

    @property
    def parties(self) -> tuple[bytes, ...]:
        return self.membership.parties

    @property
    def dropouts(self) -> int:
        return self.membership.dropouts

    def plan(self, step: int, length: int, seen: bytes, spare: SpareNoise | None) -> SumPlan:
        at = step, length, seen, spare
        return sum_plan(self.parties, self.dropouts, self.membership.colluding, self.name, at)

    def exchange(self, number: int, plan: SumPlan, message: bytes) -> bytes | NDArray[np.int64]:  # noqa: ARG002
        assert self.channel is not None  # noqa: S101  # set before anything is computed
        if self.begun != plan.session:
            self.begun = plan.session
            spare = b"" if plan.spare is None else plan.spare.to_bytes()
            self.channel.send(Frame.BEGIN, plan.length.to_bytes(8) + spare)
        self.channel.send(Frame.SUM, message)
        limits = {Frame.SUM: CONTROL + 512 * len(self.parties), Frame.TOTAL: 8 * plan.length}
        kind, body = self.channel.receive(limits)
        if kind is Frame.SUM:
            return body
        if len(body) != 8 * plan.length:
            raise ProtocolError("The sum has the wrong length.")
        return np.frombuffer(body, "<i8").astype(np.int64)

    def leave(self, number: int) -> None:
        """The end of the connection says it."""
