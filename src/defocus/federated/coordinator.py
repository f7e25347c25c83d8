"""The coordinator of a secure sum; see :mod:`defocus.federated.secure_aggregation` for what is promised."""

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from defocus.errors import ProtocolError, TooFewPartiesError
from defocus.federated.identity import KEY, verified
from defocus.federated.masks import PAIR, SELF, add_masks, commitment, derived, exchanged, usable
from defocus.federated.messages import Kind, Received, bitmap, numbers, read, rows, table, written
from defocus.federated.secret_sharing import SHARE, coefficients, combined
from defocus.federated.sum_plan import SumPlan

__all__ = ["Coordinator"]


@final
class Coordinator:
    """Carries messages between parties, and computes the sum over those who stayed.

    :meth:`accept` takes what parties say, in any order; :meth:`advance` ends a step and gives what to send to whom.
    After the last step, :meth:`sum` is there. A message that is refused changes nothing.

    >>> from defocus.federated import Identity, Party
    >>> own = [Identity.generate() for _ in range(3)]
    >>> plan = SumPlan(tuple(each.public for each in own), length=2)
    >>> coordinator = Coordinator(plan)
    >>> coordinator.accept(Party(plan, 2, own[1], [5, 6]).begin()), sorted(coordinator.missing)
    (2, [1, 3])
    """

    __slots__ = (
        *("_dealt", "_directory", "_done", "_due", "_factors", "_heard", "_inboxes"),
        *("_keys", "_plan", "_sent", "_shares", "_signatures", "_survivors", "_total", "_wrong"),
    )

    def __init__(self, plan: SumPlan) -> None:
        self._plan = plan
        self._due: Kind | None = Kind.KEYS
        self._heard: set[int] = set()
        self._keys: dict[int, bytes] = {}
        self._sent: set[bytes] = set()
        self._signatures: dict[int, bytes] = {}
        self._directory: dict[int, tuple[int, ...]] = {}
        self._dealt: dict[int, dict[int, bytes]] = {}
        self._inboxes: dict[int, tuple[int, ...]] = {}
        self._survivors: frozenset[int] = frozenset()
        self._shares: dict[tuple[int, int], dict[int, bytes]] = {}
        self._wrong: dict[int, set[int]] = {}
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
        verified(self._plan.parties[sender - 1], received.signed, received.body, received.signature)
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
        if len(received.body) != 2 * KEY:
            raise ProtocolError("A message has the wrong length.")
        own = bytes(received.body[:KEY]), bytes(received.body[KEY:])
        if not all(map(usable, own)):  # its neighbours would refuse all that they are told, and so the whole sum
            raise ProtocolError(f"Party {received.sender} sent a key that is none.")
        if self._sent.intersection(own) or own[0] == own[1]:
            raise ProtocolError(f"Party {received.sender} sent a key that was sent before.")
        self._sent.update(own)
        self._keys[received.sender] = bytes(received.body) + received.signature

    def _directories(self, heard: frozenset[int]) -> dict[int, bytes]:
        session, found = self._plan.session, {}
        for party in sorted(heard):
            near = tuple(each for each in self._plan.neighbours(party) if each in heard)
            self._directory[party] = near
            found[party] = written(Kind.DIRECTORY, session, table((each, self._keys[each]) for each in near))
        return found

    def _take_shares(self, received: Received) -> None:
        dealt = dict(rows(received.body, self._plan.secrets * KEY + self._plan.sealed))
        if tuple(dealt) != self._directory[received.sender]:
            raise ProtocolError(f"Party {received.sender} did not share with all of its neighbours.")
        self._dealt[received.sender] = dealt

    def _deliveries(self, heard: frozenset[int]) -> dict[int, bytes]:
        session, found = self._plan.session, {}
        for party in sorted(heard):
            near = tuple(each for each in self._directory[party] if each in heard)
            self._inboxes[party] = near
            sealed = table((each, self._dealt[each][party][self._plan.secrets * KEY :]) for each in near)
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
        plan, party, over, body = self._plan, received.sender, self._survivors, received.body
        near = self._inboxes[party]
        stayed, shown = tuple(each for each in near if each in over), list[tuple[int, int, bytes]]()
        for what in (None, *plan.opened(over)):  # a mask of each, and then the seeds of those that stayed
            dealers = near if what is None else stayed
            said = dict(rows(body[: len(dealers) * (2 + SHARE)], SHARE))
            body = body[len(dealers) * (2 + SHARE) :]
            if tuple(said) != dealers:
                raise ProtocolError(f"Party {party} did not reveal what it holds.")
            shown += [(n, plan.mask_opened(n, over) if what is None else what, said[n]) for n in dealers]
        if body:
            raise ProtocolError("A message has the wrong length.")
        for dealer, what, share in shown:
            promised = self._dealt[dealer][party][what * KEY : (what + 1) * KEY]
            if commitment(plan.session, dealer, party, share) != promised:
                self._wrong.setdefault(dealer, set()).add(party)  # others are enough, or the sum fails
                continue
            self._shares.setdefault((dealer, what), {})[party] = share

    def _unmask(self) -> None:
        plan, dealers = self._plan, frozenset(self._inboxes)
        over = sorted(self._survivors)
        keys = [(derived(self._secret(party, SELF), plan.session, b"self"), True) for party in over]
        for party in sorted(dealers - self._survivors):
            near = [each for each in self._inboxes[party] if each in self._survivors]
            if not near:
                continue
            private = X25519PrivateKey.from_private_bytes(self._secret(party, PAIR))
            if private.public_key().public_bytes_raw() != self._keys[party][KEY : 2 * KEY]:
                raise ProtocolError(f"Party {party} dealt shares of a key that is not its own.")
            for other in near:
                theirs = self._keys[other][KEY : 2 * KEY]
                key = exchanged((party, private), (other, theirs), plan.session, b"pair")
                keys.append((key, other < party))
        add_masks(self._total, keys)
        for secret in plan.opened(self._survivors):
            for party in over:
                self._total -= plan.spare_noise(secret, self._secret(party, secret))
        self._shares, self._done = {}, True

    def _secret(self, party: int, what: int) -> bytes:
        shares = dict(sorted(self._shares.get((party, what), {}).items())[: self._plan.threshold])
        holders = tuple(shares)
        if len(holders) < self._plan.threshold:
            if wrong := self._wrong.get(party):
                # Who dealt a share, or who shows it, may lie: not more of these than may collude, and one at least.
                if len(wrong) > max(1, self._plan.colluding):
                    raise ProtocolError(f"Party {party} dealt shares that are not those that it promised.")
                said = " and ".join(f"party {holder}" for holder in sorted(wrong))
                raise ProtocolError(f"Shown by {said} is another share than party {party} promised: one of them lies.")
            raise TooFewPartiesError(len(holders), self._plan.threshold)
        if holders not in self._factors:
            self._factors[holders] = coefficients(holders)
        secret = combined(shares, self._factors[holders])
        if secret is None:
            raise ProtocolError(f"Party {party} dealt shares of no secret.")
        return secret
