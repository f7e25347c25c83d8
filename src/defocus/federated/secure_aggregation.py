r"""Sums of integer vectors over parties, of which a coordinator learns the sum and nothing else.

Each party hides its vector behind masks: one of its own, and one with each neighbour, which the neighbour subtracts.
In the sum the latter cancel. Keys of all masks are shared in secret among the neighbours, so that the masks of whoever
drops out, and the own masks of whoever stays, can be taken off afterwards: for each party one of the two, never both.

====================  =====================================================================================
who                   learns
====================  =====================================================================================
the coordinator       the sum over the parties that stayed, and who they are
a party               who takes part; of others nothing
coordinator and up to ``colluding`` parties    the sum of the others' vectors, and nothing else
====================  =====================================================================================

Guarantee:
    Sums are exact modulo 2**bits. With n parties, at most D ``dropouts`` and C ``colluding`` with the coordinator, a
    party reveals what it holds only for one set of survivors, of at least n - D parties, that more than (n + C) / 2
    parties signed. Of two such sets an honest party would have signed both, so there is one, and a coordinator that
    lies about survivors to some learns nothing. With k neighbours, a mask is opened by t = k - D shares; for both masks
    of one party, C colluders and the k - C others, who reveal one share each, would have to give 2t shares:
    2(t - C) <= k - C. The plan refuses k - 2D <= C, so that this is false.

    Beyond 100 parties each has neighbours drawn at random, as few as leave the same conditions broken with a
    probability below 2**-40.
Assumes:
    Public keys of the parties are known to all of them. X25519, HKDF-SHA256, AES-256 in counter mode,
    ChaCha20-Poly1305 and Ed25519 are secure. Beyond 100 parties, the coordinator does not choose the name of a sum
    by trying many.
    Nobody is kept from giving a wrong vector of its own.

Reference:
    Bonawitz et al. (2017), Practical secure aggregation for privacy-preserving machine learning; Bell, Bonawitz,
    Gascón, Lepoint, Raykova (2020), Secure single-server aggregation with (poly)logarithmic overhead.
"""

import hashlib
import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray
from scipy.special import gammaln

from defocus.errors import InvalidParameterError, ProtocolError, TooFewPartiesError, count, whole
from defocus.federated.messages import Kind, Received, bitmap, heading, known, numbers, read, rows, table, written
from defocus.federated.secret_sharing import SHARE, coefficients, combined, divided

__all__ = ["Coordinator", "Identity", "Party", "SumPlan", "secure_sum"]

_KEY, _TAG, _SIGNATURE = 32, 16, 64
_SEALED = 2 * SHARE + _TAG
"""Bytes of two shares as they travel."""
_COMPLETE = 100
"""Up to so many parties, each is everybody's neighbour."""
_FAILS = 2.0**-40
"""The probability with which a random graph may break the conditions of the sum."""
_CHUNK = 1 << 15
"""Numbers that are masked at a time, so that they stay in the processor's cache."""
_SELF, _PAIR = 0, 1
"""What a revealed share is of: a party's own mask, or its key for the masks with others."""


@final
@dataclass(frozen=True, slots=True)
class Identity:
    """The key with which a party signs. It is never shown; others know ``public``.

    >>> len(Identity.generate().public)
    32
    """

    _private: Ed25519PrivateKey = field(repr=False)

    @staticmethod
    def generate() -> "Identity":
        """A new one."""
        return Identity(Ed25519PrivateKey.generate())

    @staticmethod
    def from_bytes(secret: object) -> "Identity":
        """One that :meth:`to_bytes` gave."""
        if not isinstance(secret, bytes) or len(secret) != _KEY:
            raise InvalidParameterError("An identity has 32 bytes.", fix="pass what Identity.to_bytes() gave.")
        return Identity(Ed25519PrivateKey.from_private_bytes(secret))

    def to_bytes(self) -> bytes:
        """The secret itself: whoever has it can speak as this party."""
        return self._private.private_bytes_raw()

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        return self._private.public_key().public_bytes_raw()

    def signed(self, head: bytes, body: bytes) -> bytes:
        """A whole message."""
        return head + body + self._private.sign(head + hashlib.sha256(body).digest())


def _verify(public: bytes, head: bytes, body: bytes | memoryview, signature: bytes) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, head + hashlib.sha256(body).digest())
    except InvalidSignature:
        raise ProtocolError("A message does not bear the signature of its sender.") from None


def _log_tails(number: int, marked: int, drawn: int) -> NDArray[np.float64]:
    """For x = 0 … drawn the logarithm of the probability of at least x marked ones among those drawn."""
    x = np.arange(drawn + 1)
    possible = (x <= marked) & (drawn - x <= number - marked)

    def choose(n: int, k: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(np.maximum(n - k, 0) + 1))

    law = np.where(possible, choose(marked, x) + choose(number - marked, drawn - x), -np.inf)
    law -= choose(number, np.array(drawn))
    return np.asarray(np.logaddexp.accumulate(law[::-1])[::-1])


@final
@dataclass(frozen=True)
class SumPlan:
    """What all parties of one sum agree on beforehand. It is public.

    Args:
        parties: the public keys of their identities; party 1 is the first.
        length: how many integers each brings.
        bits: sums are exact modulo 2**bits, a multiple of 8 up to 64.
        dropouts: how many parties may fail at any time without voiding the sum.
        colluding: how many may show the coordinator everything they know.
        name: what tells this sum from all others; random by default.

    >>> keys = tuple(Identity.generate().public for _ in range(5))
    >>> plan = SumPlan(keys, length=3, dropouts=1, colluding=1)
    >>> plan.least, plan.threshold
    (4, 3)
    """

    parties: tuple[bytes, ...]
    length: int
    bits: int = 32
    dropouts: int = 0
    colluding: int = 0
    name: bytes = field(default_factory=lambda: secrets.token_bytes(_KEY))

    def __post_init__(self) -> None:
        number = len(self.parties)
        given: tuple[object, ...] = self.parties
        good = all(isinstance(each, bytes) and len(each) == _KEY for each in given)
        if not good or len(set(self.parties)) != number or not 2 <= number < 1 << 16:
            raise InvalidParameterError(
                "The parties of a sum are from 2 to 65535 different public keys of 32 bytes.",
                fix="pass Identity.public of each.",
            )
        if len(self.name) != _KEY:
            raise InvalidParameterError("The name of a sum has 32 bytes.", fix="leave it out: a random one is made.")
        count("length", self.length)
        whole("dropouts", self.dropouts)
        whole("colluding", self.colluding)
        if self.bits not in range(8, 65, 8):
            raise InvalidParameterError(f"Sums modulo 2**{self.bits!r:.20} are not supported.", fix="pass bits=32.")
        if number - 1 <= 2 * self.dropouts + self.colluding:
            raise InvalidParameterError(
                f"Of {number} parties, {self.dropouts} may drop out and {self.colluding} collude: the rest is too few"
                " to agree on who is left.",
                fix="let twice the drop-outs and the colluding parties be less than all others, or add parties.",
            )
        _ = self.degree

    @cached_property
    def session(self) -> bytes:
        """The digest of everything that was agreed on."""
        facts = (self.length, self.bits, self.dropouts, self.colluding, len(self.parties))
        said = b"".join(fact.to_bytes(8) for fact in facts)
        return hashlib.sha256(b"defocus.sum/1" + self.name + said + b"".join(self.parties)).digest()

    @property
    def least(self) -> int:
        """There is no sum over fewer parties."""
        return len(self.parties) - self.dropouts

    @property
    def quorum(self) -> int:
        """So many parties have to sign the same set of survivors."""
        return (len(self.parties) + self.colluding) // 2 + 1

    @cached_property
    def degree(self) -> int:
        """How many neighbours each party has."""
        number = len(self.parties)
        if number <= _COMPLETE:
            return number - 1
        for degree in range(2, number - 1, 2):
            lost, bad = self._unlucky(degree)
            if degree - 2 * lost > bad and self._connected(degree, lost):
                return degree
        return number - 1

    @cached_property
    def threshold(self) -> int:
        """So many shares open a mask."""
        if self.degree == len(self.parties) - 1:
            return self.degree - self.dropouts
        return self.degree - self._unlucky(self.degree)[0]

    def _unlucky(self, degree: int) -> tuple[int, int]:
        """How many drop-outs and colluders some party has among its neighbours at most, but for bad luck."""
        number = len(self.parties)
        chance = math.log(_FAILS / (8 * number))
        tails = (_log_tails(number - 1, own, degree) for own in (self.dropouts, self.colluding))
        lost, bad = (int(np.argmax(np.append(tail[1:], -np.inf) <= chance)) for tail in tails)
        return lost, bad

    def _connected(self, degree: int, lost: int) -> bool:
        """Whether nobody can cut the honest parties in two, but for bad luck.

        A cut takes two runs of half a neighbourhood on the ring without an honest party that stays. Who drops out may
        be chosen after the ring is seen, but if more than ``lost`` neighbours of a party do, its masks are not opened,
        and there is no sum. So either run has all but so many places taken by colluders.
        """
        half, number = degree // 2, len(self.parties)
        if lost >= half:
            return False
        cut = float(_log_tails(number, self.colluding, half)[half - lost])
        return 2 * (math.log(number) + cut) <= math.log(_FAILS / 2)

    def neighbours(self, party: int) -> tuple[int, ...]:
        """The parties with which a party shares masks, in order."""
        number = len(self.parties)
        if self.degree == number - 1:
            return tuple(each for each in range(1, number + 1) if each != party)
        place, half = self._places[party - 1], self.degree // 2
        near = (self._ring[(place + step) % number] for step in range(-half, half + 1) if step)
        return tuple(sorted(near))

    @cached_property
    def _ring(self) -> list[int]:
        """The parties in an order that the digest draws; neighbours are near."""
        parties = range(1, len(self.parties) + 1)
        return sorted(parties, key=lambda each: hashlib.sha256(self.session + each.to_bytes(2)).digest())

    @cached_property
    def _places(self) -> list[int]:
        places = [0] * len(self.parties)
        for place, party in enumerate(self._ring):
            places[party - 1] = place
        return places

    @property
    def word(self) -> type[np.unsignedinteger[Any]]:
        """The integers in which is computed."""
        return np.uint32 if self.bits <= 32 else np.uint64

    @property
    def size(self) -> int:
        """Bytes of a masked vector."""
        return self.length * self.bits // 8

    def packed(self, vector: NDArray[Any]) -> bytes:
        """A vector as it travels: the last ``bits`` of each integer."""
        wide = vector.astype(self.word, copy=False).view(np.uint8).reshape(self.length, -1)
        return np.ascontiguousarray(wide[:, : self.bits // 8]).tobytes()

    def unpacked(self, body: memoryview) -> NDArray[Any]:
        """What :meth:`packed` wrote."""
        width = np.dtype(self.word).itemsize
        if self.bits == 8 * width:
            return np.frombuffer(body, self.word)
        wide = np.zeros((self.length, width), np.uint8)
        wide[:, : self.bits // 8] = np.frombuffer(body, np.uint8).reshape(self.length, -1)
        return wide.reshape(-1).view(self.word)

    def signed(self, vector: NDArray[Any]) -> NDArray[np.int64]:
        """Integers modulo 2**bits as those nearest to zero."""
        shift = np.uint64(64 - self.bits)
        return (vector.astype(np.uint64) << shift).view(np.int64) >> np.int64(64 - self.bits)


def _add_masks(vector: NDArray[Any], keys: Sequence[tuple[bytes, bool]]) -> None:
    """Add the stream of each key to a vector, or subtract it where the flag says so."""
    streams = [(Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor(), minus) for key, minus in keys]
    width = vector.itemsize
    mask, zeros = np.empty(_CHUNK, vector.dtype), bytes(_CHUNK * width)
    into = memoryview(mask.view(np.uint8))  # type: ignore[arg-type]
    for start in range(0, len(vector), _CHUNK):
        part = vector[start : start + _CHUNK]
        size = len(part) * width
        for stream, minus in streams:
            stream.update_into(memoryview(zeros)[:size], into[:size])
            if minus:
                part -= mask[: len(part)]
            else:
                part += mask[: len(part)]


def _derived(secret: bytes, session: bytes, what: bytes) -> bytes:
    return HKDF(SHA256(), _KEY, salt=session, info=b"defocus.sum/1 " + what).derive(secret)


def _exchanged(mine: tuple[int, X25519PrivateKey], theirs: tuple[int, bytes], session: bytes, what: bytes) -> bytes:
    """A key of two parties, bound to their numbers and to both public keys.

    Other bytes can stand for a key with the same secret: the point with its unused bit set, or moved by one of small
    order. Unless the key is bound to who sent which bytes, whoever sends such a twin of another's key gets the
    other's masks, and the two cancel.
    """
    number, own = mine
    try:
        shared = own.exchange(X25519PublicKey.from_public_bytes(theirs[1]))
    except ValueError:
        raise ProtocolError("A party sent a key that is none.") from None
    both = sorted([(number, own.public_key().public_bytes_raw()), theirs])
    return _derived(shared, session, what + b"".join(each.to_bytes(2) + public for each, public in both))


def _nonce(sender: int, receiver: int) -> bytes:
    """One of two for each pair of parties, which has a key of its own."""
    return bytes(11) + bytes([sender < receiver])


def _commitment(session: bytes, dealer: int, holder: int, share: bytes) -> bytes:
    return hashlib.sha256(session + dealer.to_bytes(2) + holder.to_bytes(2) + share).digest()


@final
class Party:
    """One party of one sum. It answers each message of the coordinator once, in order, or refuses and stays silent.

    Args:
        plan: what was agreed on.
        number: which party this is, from 1.
        identity: its key.
        values: its vector; integers are taken modulo 2**bits.

    >>> own = [Identity.generate() for _ in range(3)]
    >>> plan = SumPlan(tuple(each.public for each in own), length=2)
    >>> len(Party(plan, 1, own[0], [5, 6]).begin())
    163
    """

    __slots__ = (
        *("_due", "_identity", "_inbox", "_keys", "_number", "_others"),
        *("_plan", "_sealing", "_seed", "_survivors", "_values"),
    )

    def __init__(self, plan: SumPlan, number: int, identity: Identity, values: Any) -> None:
        if not 1 <= whole("number", number) <= len(plan.parties) or plan.parties[number - 1] != identity.public:
            raise InvalidParameterError(
                f"The plan does not name this identity as party {number}.", fix="pass the number of its public key."
            )
        vector = np.asarray(values)
        if vector.shape != (plan.length,) or vector.dtype.kind not in "iu":
            raise InvalidParameterError(
                f"A party brings {plan.length} integers.", fix="pass a vector of integers of that length."
            )
        self._plan, self._number, self._identity = plan, number, identity
        self._values = vector.astype(np.int64).view(np.uint64).astype(plan.word)
        self._sealing, self._keys = X25519PrivateKey.generate(), X25519PrivateKey.generate()
        self._seed = secrets.token_bytes(_KEY)
        self._others: dict[int, tuple[bytes, bytes]] = {}
        self._inbox: dict[int, tuple[bytes, bytes]] = {}
        self._survivors = b""
        self._due: Kind | None = None

    def __repr__(self) -> str:
        return f"Party({self._number} of {len(self._plan.parties)})"

    def begin(self) -> bytes:
        """The first message: fresh public keys."""
        if self._due is not None or self._others:
            raise ProtocolError("This party has begun before.")
        self._due = Kind.DIRECTORY
        keys = (each.public_key().public_bytes_raw() for each in (self._sealing, self._keys))
        return self._said(Kind.KEYS, b"".join(keys))

    def receive(self, message: bytes) -> bytes:
        """The answer to a message of the coordinator. After an error there is none any more."""
        due, self._due = self._due, None
        if due is None:
            raise ProtocolError("This party takes part no more.")
        received = read(message, due, self._plan.session)
        answer = {
            Kind.DIRECTORY: self._share,
            Kind.INBOX: self._mask,
            Kind.SURVIVORS: self._confirm,
            Kind.CONFIRMATIONS: self._reveal,
        }[due](received.body)
        self._due = {
            Kind.DIRECTORY: Kind.INBOX,
            Kind.INBOX: Kind.SURVIVORS,
            Kind.SURVIVORS: Kind.CONFIRMATIONS,
        }.get(due)
        return answer

    def _said(self, kind: Kind, body: bytes) -> bytes:
        return self._identity.signed(heading(kind, self._plan.session, self._number), body)

    def _share(self, body: memoryview) -> bytes:
        """Check the keys of the neighbours, and share both secrets among them."""
        plan, number = self._plan, self._number
        for other, sent in rows(body, 2 * _KEY + _SIGNATURE):
            keys = sent[: 2 * _KEY]
            known([other], plan.neighbours(number))
            _verify(plan.parties[other - 1], heading(Kind.KEYS, plan.session, other), keys, sent[2 * _KEY :])
            self._others[other] = keys[:_KEY], keys[_KEY:]
        if len({key for keys in self._others.values() for key in keys}) < 2 * len(self._others):
            raise ProtocolError("Two parties sent the same key.")
        self._enough(len(self._others))
        own = divided(self._seed, self._others, plan.threshold)
        pair = divided(self._keys.private_bytes_raw(), self._others, plan.threshold)
        sealed = []
        for other in self._others:
            cipher = ChaCha20Poly1305(self._sealed_with(other))
            text = cipher.encrypt(_nonce(number, other), own[other] + pair[other], plan.session)
            commitments = (_commitment(plan.session, number, other, share[other]) for share in (own, pair))
            sealed.append((other, b"".join(commitments) + text))
        return self._said(Kind.SHARES, table(sealed))

    def _mask(self, body: memoryview) -> bytes:
        """Open the shares of others, and hide the vector behind the masks with those who shared."""
        plan, number = self._plan, self._number
        for dealer, text in rows(body, _SEALED):
            known([dealer], frozenset(self._others))
            cipher = ChaCha20Poly1305(self._sealed_with(dealer))
            try:
                shares = cipher.decrypt(_nonce(dealer, number), text, plan.session)
            except InvalidTag:
                raise ProtocolError("Shares for this party do not open.") from None
            self._inbox[dealer] = shares[:SHARE], shares[SHARE:]
        self._enough(len(self._inbox))
        keys = [(_derived(self._seed, plan.session, b"self"), False)]
        for other in self._inbox:
            key = _exchanged((number, self._keys), (other, self._others[other][1]), plan.session, b"pair")
            keys.append((key, other < number))
        _add_masks(self._values, keys)
        answer = self._said(Kind.MASKED, plan.packed(self._values))
        self._values = self._values[:0]
        return answer

    def _confirm(self, body: memoryview) -> bytes:
        """Sign the set of parties over which the sum is to be, if it is one that was agreed on."""
        plan = self._plan
        named = numbers(body, len(plan.parties))
        if self._number not in named or len(named) < plan.least:
            raise ProtocolError(f"The coordinator names {len(named)} survivors, which is not what was agreed on.")
        known(named & frozenset(plan.neighbours(self._number)), frozenset(self._inbox))
        self._survivors = bytes(body)
        return self._said(Kind.CONFIRMED, self._survivors)

    def _reveal(self, body: memoryview) -> bytes:
        """Reveal one share for each neighbour, once enough parties signed the same set of survivors."""
        plan, said = self._plan, 0
        for other, signature in rows(body, _SIGNATURE):
            known([other], range(1, len(plan.parties) + 1))
            head = heading(Kind.CONFIRMED, plan.session, other)
            _verify(plan.parties[other - 1], head, self._survivors, signature)
            said += 1
        if said < plan.quorum:
            raise ProtocolError(f"{said} parties name the same survivors, but it takes {plan.quorum}.")
        named = numbers(memoryview(self._survivors), len(plan.parties))
        shown = []
        for dealer, shares in self._inbox.items():
            what = _SELF if dealer in named else _PAIR
            shown.append((dealer, bytes([what]) + shares[what]))
        self._inbox = {}
        return self._said(Kind.REVEALED, table(shown))

    def _sealed_with(self, other: int) -> bytes:
        return _exchanged((self._number, self._sealing), (other, self._others[other][0]), self._plan.session, b"seal")

    def _enough(self, found: int) -> None:
        if found < self._plan.threshold:
            raise ProtocolError(f"{found} neighbours are left, but it takes {self._plan.threshold}.")


@final
class Coordinator:
    """Carries messages between parties, and computes the sum over those who stayed.

    :meth:`accept` takes what parties say, in any order; :meth:`advance` ends a step and gives what to send to whom.
    After the last step, :meth:`sum` is there. A message that is refused changes nothing.

    >>> own = [Identity.generate() for _ in range(3)]
    >>> plan = SumPlan(tuple(each.public for each in own), length=2)
    >>> coordinator = Coordinator(plan)
    >>> coordinator.accept(Party(plan, 2, own[1], [5, 6]).begin()), sorted(coordinator.missing)
    (2, [1, 3])
    """

    __slots__ = (
        *("_dealt", "_directory", "_done", "_due", "_factors", "_heard", "_inboxes"),
        *("_keys", "_plan", "_shares", "_signatures", "_survivors", "_total"),
    )

    def __init__(self, plan: SumPlan) -> None:
        self._plan = plan
        self._due: Kind | None = Kind.KEYS
        self._heard: set[int] = set()
        self._keys: dict[int, bytes] = {}
        self._signatures: dict[int, bytes] = {}
        self._directory: dict[int, tuple[int, ...]] = {}
        self._dealt: dict[int, dict[int, bytes]] = {}
        self._inboxes: dict[int, tuple[int, ...]] = {}
        self._survivors: frozenset[int] = frozenset()
        self._shares: dict[int, dict[int, bytes]] = {}
        self._total = np.zeros(plan.length, plan.word)
        self._factors: dict[tuple[int, ...], list[int]] = {}
        self._done = False

    @property
    def due(self) -> Kind | None:
        """What parties are to say now; None when there is nothing left to say."""
        return self._due

    @property
    def missing(self) -> frozenset[int]:
        """Who is still expected to say it."""
        return frozenset(self._expected()) - self._heard

    @property
    def survivors(self) -> frozenset[int]:
        """The parties over which the sum is."""
        return self._survivors

    def accept(self, message: bytes) -> int:
        """Take a message of a party, whose number is returned; a message that is not due is refused."""
        if self._due is None:
            raise ProtocolError("Nothing is to be said any more.")
        received = read(message, self._due, self._plan.session)
        sender = received.sender
        if sender not in self._expected():
            raise ProtocolError(f"Party {sender} has no part in this step.")
        if sender in self._heard:
            raise ProtocolError(f"Party {sender} said this before.")
        _verify(self._plan.parties[sender - 1], received.signed, received.body, received.signature)
        {
            Kind.KEYS: self._take_keys,
            Kind.SHARES: self._take_shares,
            Kind.MASKED: self._take_masked,
            Kind.CONFIRMED: self._take_confirmed,
            Kind.REVEALED: self._take_revealed,
        }[self._due](received)
        self._heard.add(sender)
        return sender

    def advance(self) -> dict[int, bytes]:
        """End this step, without those who did not answer, and give the next message for each who did.

        If fewer than were agreed on are left, the sum has failed for good, and nothing was learned.
        """
        due, heard = self._due, frozenset(self._heard)
        if due is None:
            raise ProtocolError("The last step is over.")
        # To open masks, as many as hold enough shares are needed; before, as many as were agreed on.
        needed = {Kind.REVEALED: 1, Kind.CONFIRMED: self._plan.quorum}.get(due, self._plan.least)
        if len(heard) < needed:
            self._due = None
            raise TooFewPartiesError(len(heard), needed)
        self._heard = set()
        self._due = {
            Kind.KEYS: Kind.SHARES,
            Kind.SHARES: Kind.MASKED,
            Kind.MASKED: Kind.CONFIRMED,
            Kind.CONFIRMED: Kind.REVEALED,
        }.get(due)
        if due is Kind.KEYS:
            return self._directories(heard)
        if due is Kind.SHARES:
            return self._deliveries(heard)
        if due is Kind.MASKED:
            self._survivors = heard
            named = written(Kind.SURVIVORS, self._plan.session, bitmap(heard, len(self._plan.parties)))
            return dict.fromkeys(sorted(heard), named)
        if due is Kind.CONFIRMED:
            signed = table(sorted(self._signatures.items()))
            return dict.fromkeys(sorted(heard), written(Kind.CONFIRMATIONS, self._plan.session, signed))
        self._unmask()
        return {}

    def sum(self) -> NDArray[np.int64]:
        """The sum over the survivors, as the integers modulo 2**bits that are nearest to zero."""
        if not self._done:
            raise ProtocolError("There is no sum: not all steps were gone through.")
        return self._plan.signed(self._total)

    def _expected(self) -> Sequence[int] | frozenset[int] | Mapping[int, Any]:
        if self._due is Kind.KEYS:
            return range(1, len(self._plan.parties) + 1)
        if self._due is Kind.SHARES:
            return self._directory
        if self._due is Kind.MASKED:
            return self._inboxes
        return frozenset(self._signatures) if self._due is Kind.REVEALED else self._survivors

    def _take_keys(self, received: Received) -> None:
        if len(received.body) != 2 * _KEY:
            raise ProtocolError("A message has the wrong length.")
        self._keys[received.sender] = bytes(received.body) + received.signature

    def _directories(self, heard: frozenset[int]) -> dict[int, bytes]:
        session, found = self._plan.session, {}
        for party in sorted(heard):
            near = tuple(each for each in self._plan.neighbours(party) if each in heard)
            self._directory[party] = near
            found[party] = written(Kind.DIRECTORY, session, table((each, self._keys[each]) for each in near))
        return found

    def _take_shares(self, received: Received) -> None:
        dealt = dict(rows(received.body, 2 * _KEY + _SEALED))
        if tuple(dealt) != self._directory[received.sender]:
            raise ProtocolError(f"Party {received.sender} did not share with all of its neighbours.")
        self._dealt[received.sender] = dealt

    def _deliveries(self, heard: frozenset[int]) -> dict[int, bytes]:
        session, found = self._plan.session, {}
        for party in sorted(heard):
            near = tuple(each for each in self._directory[party] if each in heard)
            self._inboxes[party] = near
            sealed = table((each, self._dealt[each][party][2 * _KEY :]) for each in near)
            found[party] = written(Kind.INBOX, session, sealed)
        return found

    def _take_masked(self, received: Received) -> None:
        if len(received.body) != self._plan.size:
            raise ProtocolError(f"Party {received.sender} sent a vector of the wrong length.")
        self._total += self._plan.unpacked(received.body)

    def _take_confirmed(self, received: Received) -> None:
        if numbers(received.body, len(self._plan.parties)) != self._survivors:
            raise ProtocolError(f"Party {received.sender} names other survivors.")
        self._signatures[received.sender] = received.signature

    def _take_revealed(self, received: Received) -> None:
        party, session = received.sender, self._plan.session
        shown = dict(rows(received.body, 1 + SHARE))
        if tuple(shown) != self._inboxes[party]:
            raise ProtocolError(f"Party {party} did not reveal what it holds.")
        for dealer, said in shown.items():
            what = _SELF if dealer in self._survivors else _PAIR
            promised = self._dealt[dealer][party][what * _KEY : (what + 1) * _KEY]
            if said[0] != what or _commitment(session, dealer, party, said[1:]) != promised:
                continue  # a wrong share of one party, or by its dealer: others are enough, or the sum fails
            self._shares.setdefault(dealer, {})[party] = said[1:]

    def _unmask(self) -> None:
        plan, dealers = self._plan, frozenset(self._inboxes)
        keys = [(_derived(self._secret(party), plan.session, b"self"), True) for party in sorted(self._survivors)]
        for party in sorted(dealers - self._survivors):
            near = [each for each in self._inboxes[party] if each in self._survivors]
            if not near:
                continue
            private = X25519PrivateKey.from_private_bytes(self._secret(party))
            if private.public_key().public_bytes_raw() != self._keys[party][_KEY : 2 * _KEY]:
                raise ProtocolError(f"Party {party} shared a key that is not its own, so the sum is lost.")
            for other in near:
                theirs = self._keys[other][_KEY : 2 * _KEY]
                key = _exchanged((party, private), (other, theirs), plan.session, b"pair")
                keys.append((key, other < party))
        _add_masks(self._total, keys)
        self._shares, self._done = {}, True

    def _secret(self, party: int) -> bytes:
        shares = dict(sorted(self._shares.get(party, {}).items())[: self._plan.threshold])
        holders = tuple(shares)
        if len(holders) < self._plan.threshold:
            raise TooFewPartiesError(len(holders), self._plan.threshold)
        if holders not in self._factors:
            self._factors[holders] = coefficients(holders)
        secret = combined(shares, self._factors[holders])
        if secret is None:
            raise ProtocolError(f"What party {party} shared is no secret, so the sum is lost.")
        return secret


def secure_sum(
    vectors: Sequence[Any] | NDArray[Any],
    *,
    bits: int = 32,
    dropouts: int = 0,
    colluding: int = 0,
    silent: Mapping[int, Kind] | None = None,
) -> tuple[NDArray[np.int64], frozenset[int]]:
    """The sum of vectors by the whole protocol, all parties in this process, and over which of them it is.

    Args:
        vectors: one for each party.
        bits: see :class:`SumPlan`.
        dropouts: how many parties may fail.
        colluding: how many may tell the coordinator what they know.
        silent: for parties that drop out, the first message that they do not send.

    >>> total, over = secure_sum([[1, 2], [3, 4], [5, 6], [7, -8]], dropouts=1, silent={4: Kind.MASKED})
    >>> total.tolist(), sorted(over)
    ([9, 12], [1, 2, 3])
    """
    identities = [Identity.generate() for _ in vectors]
    plan = SumPlan(tuple(each.public for each in identities), len(vectors[0]), bits, dropouts, colluding)
    parties = [Party(plan, i + 1, own, vector) for i, (own, vector) in enumerate(zip(identities, vectors, strict=True))]
    coordinator, gone = Coordinator(plan), silent or {}

    def speaks(number: int) -> bool:
        return coordinator.due is not None and gone.get(number, Kind.REVEALED + 1) > coordinator.due

    for party in (each for i, each in enumerate(parties) if speaks(i + 1)):
        coordinator.accept(party.begin())
    while coordinator.due is not None:
        for number, message in _turns(coordinator):
            if speaks(number):
                coordinator.accept(parties[number - 1].receive(message))
    return coordinator.sum(), coordinator.survivors


def _turns(coordinator: Coordinator) -> Iterator[tuple[int, bytes]]:
    yield from coordinator.advance().items()
