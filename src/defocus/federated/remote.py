"""Sites as processes of their own: the coordinator asks them over TLS, and carries what is behind masks."""

import json
import math
import re
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, final

from defocus.answers import Effect, Preview, PreviewColumn, Released, Rule
from defocus.answers.rules import rules_of
from defocus.answers.tables import line
from defocus.errors import DefocusError, InvalidParameterError, Number, ProtocolError, TooFewPartiesError
from defocus.federated.lockstep import Hub, after
from defocus.federated.membership import Member, Membership, identity_at, read_membership
from defocus.federated.site import FACTS, asking, question_name
from defocus.federated.sum_plan import by_name, in_words
from defocus.federated.transport import CONTROL, Channel, Frame, context, decoded, encoded
from defocus.ledger import Receipt
from defocus.mechanisms.noise_shares import SpareNoise
from defocus.privacy.wire import from_wire
from defocus.release.charge import spendable
from defocus.tables.aggregates import Aggregate
from defocus.tables.answers import from_record
from defocus.tables.table_questions import spelled, written

__all__ = ["RemoteFederation", "RemoteGroups", "RemoteQuestion", "remote_federation"]

_LONGEST = 1 << 24
"""So many integers a sum may be over."""
_ACCUSED = re.compile("Party ([0-9]{1,5}) dealt shares")
"""How it is said of whom what he shared in secret is wrong, so that there is no sum."""
_BEGIN = 1024
"""Bytes of what is said when a sum begins."""
_ANSWER = 64 << 20
_ANEW = 1.0
"""Seconds in which a site is asked anew, should its connection be lost: strangers may crowd its door."""
_TIMES = (9, 10)
"""What OpenSSL calls a certificate of the future, and one that is too old."""
_STEPS = {"where", "derive", "rename", "part", "bound", "per_person"}


def remote_federation(
    file: str | Path, key: str | Path | None = None, without: Sequence[str] = ()
) -> "RemoteFederation":
    """The federation of a file, asked with the coordinator's key, which lies beside it by default."""
    membership = read_membership(file)
    place = Path(file).parent / "coordinator.key" if key is None else Path(key)
    if identity_at(place).public != membership.coordinator.public:
        raise InvalidParameterError(
            "The key does not belong to the coordinator of the federation.", fix="pass key= with its key."
        )
    names = [site.name for site in membership.sites]
    for name in without:
        if name not in names:
            raise InvalidParameterError(
                f"The federation has no site {name!r:.80} to be left out.", fix=f"choose among {', '.join(names)}."
            )
    return RemoteFederation(membership, place, without=frozenset(without))


@final
@dataclass(frozen=True, slots=True)
class RemoteFederation:
    """Sites on a network, to be asked as one table. Made by :func:`~defocus.federated.federation` of a file."""

    membership: Membership
    key: Path
    steps: tuple[tuple[Any, ...], ...] = ()
    without: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"RemoteFederation of {', '.join(site.name for site in self.membership.sites)}"

    def __getattr__(self, name: str) -> Any:
        if name not in _STEPS:
            raise AttributeError(f"A federation has no {name!r}. To fix: ask with sql(…), or with agg(…) as a table.")

        def step(*given: Any, **named: Any) -> RemoteFederation:
            return replace(self, steps=(*self.steps, (name, *given, *([named] if named else []))))

        return step

    def join(self, other: str, *, on: Any, how: str = "left") -> "RemoteFederation":
        """Columns of another table that the dataset file of every site declares beside its own."""
        step = ("join", other, dict(on) if isinstance(on, Mapping) else on, how)
        return replace(self, steps=(*self.steps, step))

    def group_by(self, *columns: str, keys: Any = "declared", sets: Any = None) -> "RemoteGroups":
        """Groups of rows with equal values; see :meth:`.Table.group_by`."""
        listed = keys if keys is None or isinstance(keys, str | Mapping) else list(keys)
        return RemoteGroups(replace(self, steps=(*self.steps, ("group_by", list(columns), listed, sets))))

    def agg(self, **aggregates: Aggregate) -> "RemoteQuestion":
        """What is asked of all rows together."""
        said = [{"name": name, **spelled(aggregate)} for name, aggregate in aggregates.items()]
        return self._asked({"steps": [list(step) for step in self.steps], "aggregates": said})

    def sql_query(self, text: str, **how: Any) -> "RemoteQuestion":
        """A SELECT as a question to all sites."""
        if self.steps:
            raise InvalidParameterError("A SELECT is about the whole table.", fix="write the steps in the SELECT.")
        return self._asked({"sql": text, **how})

    def sql(self, text: str, *, epsilon: Number, delta: Number | None = None, **more: Any) -> Released:
        """The answer of all sites to a SELECT."""
        return self.sql_query(text).release(epsilon=epsilon, delta=delta, **more)

    def budgets(self) -> dict[str, str]:
        """What each site says was spent and is left there, or why it does not say so. Free.

        A site tells its coordinator no more than previews of dearer and dearer questions would.
        """
        full = asking(self.membership, "status", {})
        ask = {name: full[name] for name in ("do", "defocus", "federation")}
        with _Round(self.membership, self.key, frozenset()) as asked:
            asked.offers(ask)
            return asked.statuses()

    def _asked(self, question: Mapping[str, Any]) -> "RemoteQuestion":
        return RemoteQuestion(self.membership, self.key, _sent(question), self.without)


@final
@dataclass(frozen=True, slots=True)
class RemoteGroups:
    """Rows of all sites, in groups."""

    together: RemoteFederation

    def agg(self, **aggregates: Aggregate) -> "RemoteQuestion":
        """What is asked of each group."""
        return self.together.agg(**aggregates)


@final
@dataclass(frozen=True, slots=True)
class RemoteQuestion:
    """A question to sites on a network: free to preview; each that takes part charges its own ledger for a release."""

    membership: Membership
    key: Path
    question: Mapping[str, Any]
    without: frozenset[str] = frozenset()

    def preview(self, *, epsilon: Number, delta: Number | None = None) -> Preview:
        """How exact each column would be, and what it would cost each site. Free."""
        price = _price(epsilon, delta)
        ask = asking(self.membership, "preview", self.question, **price)
        with _Round(self.membership, self.key, self.without) as asked:
            asked.offers(ask)
            offer = asked.agreed()
        seen = offer["preview"]
        shown: Preview = _understood(
            "a preview", lambda: replace(_preview(seen), rules=rules_of((*seen["rules"], self._words)))
        )
        return shown

    def release(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
    ) -> Released:
        """Each site charges, computes and adds its share of noise; what comes out is the sum of those that stayed.

        A site that refuses, fails or is gone takes no part, and the answer says so. If fewer are left than the
        federation file says, there is no answer; before that is known to be possible, nobody is charged.
        """
        price = {**_price(epsilon, delta), "purpose": purpose, "who": who}
        ask = _sent(asking(self.membership, "ask", self.question, **price))
        with _Round(self.membership, self.key, self.without) as asked:
            asked.offers(ask)
            offer = asked.agreed()
            record, receipt = asked.answer(ask, offer["facts"])
            answer: Released = _understood("an answer", lambda: from_record(record, Receipt.read(receipt)))
            rules = [*answer.rules, self._words, *asked.told()]
        return replace(answer, rules=rules_of(rules))

    @property
    def _words(self) -> str:
        known = self.membership
        return in_words(len(known.sites), known.dropouts, known.colluding, known.overlap)


def _price(epsilon: Number, delta: Number | None) -> dict[str, Any]:
    """The price as it is sent, checked here already."""
    spendable(epsilon, delta)
    return {"epsilon": written(epsilon), "delta": written(delta)}


def _sent(said: Mapping[str, Any]) -> dict[str, Any]:
    """What the sites will read."""
    try:
        return decoded(encoded(said))
    except (TypeError, ValueError, ProtocolError):
        raise InvalidParameterError(
            "The question holds what cannot be sent.", fix="ask with text, lists, and numbers that are finite."
        ) from None


def _preview(said: Mapping[str, Any]) -> Preview:
    columns = tuple(
        PreviewColumn(
            one["name"],
            one["how"],
            one["error"],
            one["interval"],
            tuple((size["rows"], _number(size["error"]), _number(size["interval"])) for size in one["by_size"]),
            one["rank"],
        )
        for one in said["columns"]
    )
    return Preview(columns, said["question"], from_wire(said["event"]), foretold=tuple(said["foretold"]))


def _number(said: float | None) -> float:
    """A number of a preview, where null stands for one that is not known."""
    return math.nan if said is None else float(said)


class _Round:
    """One question, asked once: connections to all sites, and what became of each."""

    def __init__(self, membership: Membership, key: Path, without: Container[str]) -> None:
        self._membership = membership
        self._names = [site.name for site in membership.sites]
        self._tls = context(key, membership.coordinator, membership.sites, server=False)
        self._channels: dict[int, Channel] = {}
        self._offers: dict[int, dict[str, Any]] = {}
        left_out = (number for number, name in enumerate(self._names, 1) if name in without)
        self._refusals: dict[int, str] = dict.fromkeys(left_out, "the coordinator asks without it")
        self._statuses: dict[int, str] = {}
        self._done: dict[int, tuple[Any, Any]] = {}
        self._hub: Hub | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for channel in self._channels.values():
            channel.close()

    def _each(self, numbers: Sequence[int], do: Any) -> None:
        threads = [threading.Thread(target=do, args=(number,)) for number in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def offers(self, ask: Mapping[str, Any]) -> None:
        """Ask all sites; those that are not there, or refuse, are remembered with the reason."""

        def one(number: int) -> None:
            try:
                said = self._heard(number, ask)
            except DefocusError as problem:
                self._refusals[number] = problem.what
            except OSError as problem:
                self._refusals[number] = f"it cannot be reached: {type(problem).__name__}"
            else:
                if said.get("do") == "refused":
                    self._refusals[number] = _told(said.get("why"))
                elif said.get("do") == ask["do"] == "status":
                    self._statuses[number] = _told(said.get("budget"))
                elif _is_offer(said) and ask["do"] != "status":
                    self._offers[number] = said
                else:
                    self._refusals[number] = "what it says is no offer"

        self._each([number for number in range(1, len(self._names) + 1) if number not in self._refusals], one)

    def _heard(self, number: int, ask: Mapping[str, Any]) -> dict[str, Any]:
        """What a site says to a question. For a moment it is asked anew, should the connection be lost."""
        site, until = self._membership.sites[number - 1], time.monotonic() + _ANEW
        while True:
            try:
                self._channels[number] = channel = self._connected(site)
                channel.say(ask)
                return channel.hear()
            except ConnectionRefusedError:
                raise
            except (DefocusError, OSError):
                if number in self._channels:
                    self._channels.pop(number).close()
                if time.monotonic() > until:
                    raise
                time.sleep(_ANEW / 10)

    def _connected(self, site: Member) -> Channel:
        patience = self._membership.patience
        plain = socket.create_connection((site.host, site.port), timeout=min(10, patience))
        try:
            secured = self._tls.wrap_socket(plain)
        except ssl.SSLCertVerificationError as problem:
            plain.close()
            if problem.verify_code in _TIMES:
                raise ProtocolError("Its certificate is not valid now: it is too old, or a clock is wrong.") from None
            raise ProtocolError("It shows no certificate of this federation.") from None
        except OSError:
            plain.close()
            raise ProtocolError("It did not say who it is.") from None
        return Channel(secured, site, patience)

    def statuses(self) -> dict[str, str]:
        """What each site said of its budget, or why it said nothing."""
        said = {**self._refusals, **self._statuses}
        return {site.name: said[number] for number, site in enumerate(self._membership.sites, 1)}

    def agreed(self) -> dict[str, Any]:
        """What most sites offer alike; the others are left out, by what differs. Refused if too few are left."""
        facts = Counter(json.dumps(offer["facts"], sort_keys=True) for offer in self._offers.values())
        found: dict[str, Any] = {}
        if facts:
            most = json.loads(facts.most_common(1)[0][0])
            for number, offer in sorted(self._offers.items()):
                if offer["facts"] == most:
                    found = found or offer
                    continue
                differ = ", ".join(name for name in sorted(most) if offer["facts"].get(name) != most[name])
                self._refusals[number] = f"it would not answer as the others do: its {differ} differ"
                del self._offers[number]
        least = len(self._membership.sites) - self._membership.dropouts
        if len(self._offers) < least:
            raise self._too_few(len(self._offers), least)
        return found

    def answer(self, ask: Mapping[str, Any], facts: Mapping[str, str]) -> tuple[Any, Any]:
        """Go through the plan with all that are willing, and give what they computed."""
        known = self._membership
        nonces = [self._offers[n]["nonce"] if n in self._offers else "" for n in range(1, len(known.sites) + 1)]
        self._hub = hub = Hub(known.parties, question_name(ask, facts, nonces), known.dropouts, known.colluding)
        for number in range(1, len(nonces) + 1):
            if number not in self._offers:
                hub.leave(number)

        def one(number: int) -> None:
            try:
                self._channels[number].say({"do": "go", "nonces": nonces})
                self._carried(number, hub)
            except DefocusError as problem:
                self._refusals[number] = problem.what
            except Exception as problem:  # noqa: BLE001  # of a site, whatever it is, no more is told than its kind
                self._refusals[number] = type(problem).__name__
            finally:
                hub.leave(number)
                if number in self._refusals:
                    self._channels[number].close()

        self._each(sorted(self._offers), one)
        if not self._done:
            raise self._too_few(len(self._done), len(known.sites) - known.dropouts)
        return self._agreed_answer()

    def _agreed_answer(self) -> tuple[Any, Any]:
        """The answer that most sites say; those that say another one are named."""
        said = {number: encoded({"said": record}) for number, (record, _) in sorted(self._done.items())}
        most, times = Counter(said.values()).most_common(1)[0]
        if 2 * times <= len(said):
            raise ProtocolError("The sites say different answers, and no answer is that of most.")
        for number, spelt in said.items():
            if spelt != most:
                self._refusals[number] = "its answer is another one than that of most sites"
        return next(self._done[number] for number, spelt in said.items() if spelt == most)

    def _carried(self, number: int, hub: Hub) -> None:
        """Carry messages of one site until it is done."""
        channel, step, seen, plan = self._channels[number], 0, b"", None
        largest = CONTROL + 512 * len(self._membership.sites)
        while True:
            masked = 0 if plan is None else plan.size
            allowed = {Frame.CONTROL: _ANSWER, Frame.BEGIN: _BEGIN, Frame.SUM: largest + masked}
            kind, body = channel.receive(allowed)
            if kind is Frame.CONTROL:
                self._ended(number, body)
                return
            if (kind is Frame.BEGIN) is not (plan is None):
                raise ProtocolError("A message came that is not due.")
            if plan is None:
                length = int.from_bytes(body[:8])
                if len(body) < 8 or not 0 < length <= _LONGEST:
                    raise ProtocolError("It announces a vector of a length that is out of range.")
                known, step = self._membership, step + 1
                spare = SpareNoise.read(body[8:], known.honest, known.dropouts) if known.dropouts else None
                if len(body) > 8 and spare is None:
                    raise ProtocolError("It announces noise that was not agreed on.")
                plan = hub.plan(step, length, seen, spare)
                continue
            reply = hub.exchange(number, plan, body)
            if isinstance(reply, bytes):
                channel.send(Frame.SUM, reply)
            else:
                seen, plan = after(seen, reply), None
                channel.send(Frame.TOTAL, reply.astype("<i8").tobytes())

    def _ended(self, number: int, body: bytes) -> None:
        said = decoded(body)
        if said.get("do") == "done" and set(said) == {"do", "answer", "receipt"}:
            self._done[number] = said["answer"], said["receipt"]
        else:
            raise ProtocolError(_told(said.get("why")))

    def told(self) -> list[Rule]:
        """What an answer says about sites that took no part to the end."""
        found = []
        for number, why in sorted(self._refusals.items()):
            there = self._hub is not None and number in self._hub.survivors
            rows = "its rows are in these numbers" if there else "its rows are not in these numbers"
            told = by_name(f"{self._names[number - 1]} took no part to the end, and {rows}: {why}", self._names)
            found.append(Rule(told, Effect.TOLD))
        return found

    def _too_few(self, left: int, needed: int) -> TooFewPartiesError:
        said = {self._names[n - 1]: by_name(why, self._names) for n, why in sorted(self._refusals.items())}
        # Sites that lie may accuse another one: it takes more than may collude, and two at least.
        accused = Counter(int(number) for why in self._refusals.values() for number in set(_ACCUSED.findall(why)))
        sure = max(1, self._membership.colluding)
        blamed = [self._names[n - 1] for n in sorted(accused) if 0 < n <= len(self._names) and accused[n] > sure]
        return TooFewPartiesError(left, needed, said, without=blamed)


def _understood(what: str, read: Callable[[], Any]) -> Any:
    """What sites say, if it can be shown."""
    try:
        made = read()
        str(made)
    except Exception:  # noqa: BLE001  # whatever it is, they said it
        raise ProtocolError(f"What the sites say is not {what}.") from None
    return made


def _told(why: object) -> str:
    """A reason as a site gives it: its first line, cut where it is long, which acts on no terminal."""
    return line(why.strip().split("\n")[0])[:400] if isinstance(why, str) and why.strip() else "it gives no reason"


def _is_offer(said: Mapping[str, Any]) -> bool:
    if set(said) != {"do", "nonce", "facts", "preview"} or said["do"] != "offer":
        return False
    nonce, facts = said["nonce"], said["facts"]
    good = isinstance(nonce, str) and len(nonce) == 64 and isinstance(facts, dict) and isinstance(said["preview"], dict)
    return good and set(facts) == FACTS and all(isinstance(value, str) for value in facts.values())
