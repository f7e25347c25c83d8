"""One party of a secure sum; see :mod:`defocus.federated.secure_aggregation` for what is promised."""

import json
import secrets
from typing import Any, final

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, ProtocolError, whole
from defocus.federated.identity import KEY, Identity, verified
from defocus.federated.masks import add_masks, commitment, derived, exchanged, nonce_of
from defocus.federated.messages import SIGNATURE, Kind, heading, known, numbers, read, rows, table
from defocus.federated.secret_sharing import SHARE, divided
from defocus.federated.sum_plan import SumPlan

__all__ = ["Party"]


@final
class Party:
    """One party of one sum. It answers each message of the coordinator once, in order, or refuses and stays silent.

    Args:
        plan: what was agreed on.
        number: which party this is, from 1.
        identity: its key.
        values: its vector; integers are taken modulo 2**bits. It may be left out until :meth:`bring`.

    >>> from defocus.federated import Identity
    >>> own = [Identity.generate() for _ in range(3)]
    >>> plan = SumPlan(tuple(each.public for each in own), length=2)
    >>> len(Party(plan, 1, own[0], [5, 6]).begin())
    163
    """

    __slots__ = (
        *("_due", "_identity", "_inbox", "_keys", "_number", "_others"),
        *("_plan", "_sealing", "_seed", "_spare", "_survivors", "_values"),
    )

    def __init__(self, plan: SumPlan, number: int, identity: Identity, values: Any = None) -> None:
        if not 1 <= whole("number", number) <= len(plan.parties) or plan.parties[number - 1] != identity.public:
            raise InvalidParameterError(
                f"The plan does not name this identity as party {number}.", fix="pass the number of its public key."
            )
        self._plan, self._number, self._identity = plan, number, identity
        self._values: NDArray[Any] | None = None
        self._sealing, self._keys = X25519PrivateKey.generate(), X25519PrivateKey.generate()
        self._seed = secrets.token_bytes(KEY)
        self._others: dict[int, tuple[bytes, bytes]] = {}
        self._spare = [secrets.token_bytes(KEY) for _ in range(2, plan.secrets)]
        self._inbox: dict[int, tuple[bytes, ...]] = {}
        self._survivors = b""
        self._due: Kind | None = None
        if values is not None:
            self.bring(values)

    def bring(self, values: Any) -> None:
        """Say which vector is to be added, before it is due."""
        plan = self._plan
        vector = np.asarray(values)
        if vector.shape != (plan.length,) or vector.dtype.kind not in "iu":
            raise InvalidParameterError(
                f"A party brings {plan.length} integers.", fix="pass a vector of integers of that length."
            )
        self._values = vector.astype(np.int64).view(np.uint64).astype(plan.word)

    def kept(self) -> bytes:
        """What has to be known of this party to go on between two messages, secrets included; not its vector.

        Keep one such state only, and the newest: who goes on from an older one could be made to reveal both masks.
        """
        keys = (each.private_bytes_raw() for each in (self._sealing, self._keys))
        own = (*keys, self._seed, self._survivors, *self._spare)
        said = [self._plan.session.hex(), int(self._due or 0), [each.hex() for each in own]]
        held = [[[n, *(one.hex() for one in each)] for n, each in of.items()] for of in (self._others, self._inbox)]
        return json.dumps([*said, *held]).encode()

    @staticmethod
    def resumed(plan: SumPlan, number: int, identity: Identity, kept: bytes) -> "Party":
        """The party of which :meth:`kept` told; in the sum that it began, and no other."""
        session, due, own, others, inbox = json.loads(kept)
        if session != plan.session.hex():
            raise ProtocolError("This party began another sum.")
        party = Party(plan, number, identity)
        sealing, keys, party._seed, party._survivors, *party._spare = (bytes.fromhex(each) for each in own)
        party._sealing, party._keys = (X25519PrivateKey.from_private_bytes(each) for each in (sealing, keys))
        party._due = Kind(due) if due else None
        party._others = {n: (bytes.fromhex(a), bytes.fromhex(b)) for n, a, b in others}
        party._inbox = {n: tuple(map(bytes.fromhex, shares)) for n, *shares in inbox}
        return party

    @property
    def due(self) -> Kind | None:
        """What it is to hear next; None before it begins, and after the end."""
        return self._due

    @property
    def missing(self) -> int | None:
        """How many parties are not in the sum; None before that is told."""
        return self._plan.missing(self._named) if self._survivors else None

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
        """Check the keys of the neighbours, and share all secrets among them."""
        plan, number = self._plan, self._number
        for other, sent in rows(body, 2 * KEY + SIGNATURE):
            keys = sent[: 2 * KEY]
            known([other], plan.neighbours(number))
            verified(plan.parties[other - 1], heading(Kind.KEYS, plan.session, other), keys, sent[2 * KEY :])
            self._others[other] = keys[:KEY], keys[KEY:]
        if len({key for keys in self._others.values() for key in keys}) < 2 * len(self._others):
            raise ProtocolError("Two parties sent the same key.")
        self._enough(len(self._others))
        own = (self._seed, self._keys.private_bytes_raw(), *self._spare)  # in the order of SELF, PAIR, and spare noise
        shared = [divided(secret, self._others, plan.threshold) for secret in own]
        sealed = []
        for other in self._others:
            cipher = ChaCha20Poly1305(self._sealed_with(other))
            text = cipher.encrypt(nonce_of(number, other), b"".join(each[other] for each in shared), plan.session)
            commitments = (commitment(plan.session, number, other, each[other]) for each in shared)
            sealed.append((other, b"".join(commitments) + text))
        return self._said(Kind.SHARES, table(sealed))

    def _mask(self, body: memoryview) -> bytes:
        """Open the shares of others, and hide the vector behind the masks with those who shared."""
        plan, number = self._plan, self._number
        for dealer, text in rows(body, plan.sealed):
            known([dealer], frozenset(self._others))
            cipher = ChaCha20Poly1305(self._sealed_with(dealer))
            try:
                shares = cipher.decrypt(nonce_of(dealer, number), text, plan.session)
            except InvalidTag:
                raise ProtocolError(f"Party {dealer} dealt shares that do not open.") from None
            self._inbox[dealer] = tuple(shares[at : at + SHARE] for at in range(0, len(shares), SHARE))
        self._enough(len(self._inbox))
        if self._values is None:
            raise ProtocolError("This party has no vector yet.")
        for secret, seed in enumerate(self._spare, 2):
            self._values += plan.spare_noise(secret, seed)
        self._spare = []
        keys = [(derived(self._seed, plan.session, b"self"), False)]
        for other in self._inbox:
            key = exchanged((number, self._keys), (other, self._others[other][1]), plan.session, b"pair")
            keys.append((key, other < number))
        add_masks(self._values, keys)
        answer = self._said(Kind.MASKED, plan.packed(self._values))
        self._values = None
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
        """Reveal what that set of survivors opens, once enough parties signed it.

        Of each neighbour a share of one mask; and of each that stayed, shares of the seeds of its spare noise for more
        drop-outs than there are.
        """
        plan, said = self._plan, 0
        for other, signature in rows(body, SIGNATURE):
            known([other], range(1, len(plan.parties) + 1))
            head = heading(Kind.CONFIRMED, plan.session, other)
            verified(plan.parties[other - 1], head, self._survivors, signature)
            said += 1
        if said < plan.quorum:
            raise ProtocolError(f"{said} parties name the same survivors, but it takes {plan.quorum}.")
        named, held = self._named, self._inbox
        shown = table((dealer, shares[plan.mask_opened(dealer, named)]) for dealer, shares in held.items())
        for secret in plan.opened(named):
            shown += table((dealer, shares[secret]) for dealer, shares in held.items() if dealer in named)
        self._inbox = {}
        return self._said(Kind.REVEALED, shown)

    @property
    def _named(self) -> frozenset[int]:
        """The parties over which the sum is."""
        return numbers(memoryview(self._survivors), len(self._plan.parties))

    def _sealed_with(self, other: int) -> bytes:
        return exchanged((self._number, self._sealing), (other, self._others[other][0]), self._plan.session, b"seal")

    def _enough(self, found: int) -> None:
        if found < self._plan.threshold:
            raise ProtocolError(f"{found} neighbours are left, but it takes {self._plan.threshold}.")
