"""The state of a run: what a checkpoint holds, and what must agree before one is used."""

import contextlib
import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch.utils import _pytree as trees

from defocus.errors import CheckpointError, InvalidParameterError
from defocus.learning.checkpoints import key_in, load, save
from defocus.learning.noising import Correlated
from defocus.learning.planning import Plan
from defocus.learning.stepping import Stepper
from defocus.learning.streams import KEY_BYTES, derive
from defocus.ledger import Ledger, Receipt
from defocus.ledger.entries import CHARGE, RELEASE, canonical
from defocus.ledger.values import fingerprint
from defocus.noise.integers import Integers
from defocus.privacy.events import NOTHING
from defocus.privacy.wire import from_wire, to_wire

__all__ = ["State", "digest_of_data", "digest_of_parameters", "digest_of_run", "finished", "gone_on"]

_LOOKED_AT = 256


def digest_of_run(plan: Plan, stepper: Stepper, optimizer: torch.optim.Optimizer) -> bytes:
    """A digest of everything public that a run depends on: plan, clipping, kinds and shapes of its parts."""
    told = [
        [str(plan.unit), repr(plan.budget), plan.size, repr(plan.sampling), repr(plan.ratio)],
        [hashlib.sha256(repr(plan.factors).encode()).hexdigest(), list(plan.shares), repr(plan.strategy)],
        to_wire(plan.event),
        [repr(stepper.clipping), str(stepper.precision), type(stepper.noise).__name__],
        [
            [name, str(each.dtype), list(each.shape)]
            for name, each in stepper.model.state_dict().items()
            if isinstance(each, torch.Tensor)
        ],
        sorted(stepper.parameters),
        [type(optimizer).__name__, [len(group["params"]) for group in optimizer.param_groups]],
    ]
    return hashlib.sha256(canonical(told).encode()).digest()


def digest_of_data(stepper: Stepper, key: bytes) -> bytes:
    """A digest, under the key of the run, of how many examples and units there are and of 256 examples among them.

    Of a dataset that changes its examples at random, the numbers only.
    """
    data, units = stepper.data, stepper.units
    secret = derive(key, "data", size=32)
    numbers = np.unique(np.linspace(0, data.length - 1, _LOOKED_AT).astype(np.int64))
    first, second = (_digest_of_examples(stepper, numbers, secret) for _ in range(2))
    owners = units.examples_of(np.unique(np.linspace(0, units.count - 1, _LOOKED_AT).astype(np.int64)))[0]
    digest = hmac.new(secret, canonical([data.length, units.count]).encode(), hashlib.sha256)
    digest.update(first if first == second else b"")
    digest.update(np.ascontiguousarray(owners).data)
    return digest.digest()


def _digest_of_examples(stepper: Stepper, numbers: Integers, secret: bytes) -> bytes:
    digest = hmac.new(secret, digestmod=hashlib.sha256)
    for leaf in trees.tree_leaves(stepper.data.take(numbers)):
        if isinstance(leaf, torch.Tensor):
            digest.update(canonical([str(leaf.dtype), list(leaf.shape)]).encode())
            digest.update(leaf.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.digest()


def digest_of_parameters(model: torch.nn.Module) -> bytes:
    """A digest of all that a model holds: after a private run, public."""
    digest = hashlib.sha256()
    for name, each in model.state_dict().items():
        digest.update(name.encode())
        if isinstance(each, torch.Tensor):
            digest.update(each.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.digest()


@final
@dataclass(slots=True)
class State:
    """A run at one moment."""

    stepper: Stepper
    optimizer: torch.optim.Optimizer
    run: bytes
    key: bytes
    taken: int
    receipt: Receipt | None

    def save(self, path: str | Path, more: dict[str, Any]) -> None:
        """Write it, secret as it is, to a file for its owner only. A file that another run wrote is not overwritten."""
        there = Path(path)
        if there.exists() and key_in(there) != self.key:
            raise CheckpointError(
                f"{there} holds a checkpoint of another run.", fix="resume that run, or name another file."
            )
        glance, receipt = self.stepper.glance, self.receipt
        save(
            there,
            {
                "run": self.run,
                "data": digest_of_data(self.stepper, self.key),
                "key": self.key,
                "taken": self.taken,
                "receipt": None if receipt is None else [receipt.sequence, receipt.hash],
                "model": dict(self.stepper.model.state_dict()),
                "optimizer": self.optimizer.state_dict(),
                "clips": self.stepper.clips,
                "noises": list(map(list, self.stepper.noise.past.items()))
                if isinstance(self.stepper.noise, Correlated)
                else [],
                "glance": None if glance is None else [glance.noisy, glance.clips, glance.scales],
                "more": more,
                "tuning": dict(self.stepper.gradients.tuning),
                "random": torch.get_rng_state(),
                "devices": list(torch.cuda.get_rng_state_all()) if torch.cuda.is_initialized() else [],
            },
        )

    def load(self, path: str | Path, ledger: Ledger | None, *, first: bool) -> tuple[dict[str, Any], dict[str, str]]:
        """Take over the state in a file, if it is of this run; otherwise nothing is changed.

        Returns what a loop wanted kept, and the ways in which gradients were added up, which round differently.
        """
        kept = load(path)
        try:
            self._compare(kept)
            receipt = None if ledger is None else _receipt(ledger, kept["receipt"])
            self._take(kept, first=first)
        except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
            if isinstance(error, InvalidParameterError):
                raise
            raise CheckpointError(
                f"The checkpoint {path} does not hold the state of such a run.", fix="pass a file that save() wrote."
            ) from None
        self.key, self.taken, self.receipt = kept["key"], kept["taken"], receipt
        return dict(kept["more"]), dict(kept["tuning"])

    def _compare(self, kept: dict[str, Any]) -> None:
        if kept["run"] != self.run:
            raise CheckpointError(
                "The checkpoint is of another run: its model, optimizer, budget or other settings are not these.",
                fix="make the Trainer with the same arguments as the run that wrote it.",
            )
        if len(kept["key"]) != KEY_BYTES or not 0 <= kept["taken"] <= self.stepper.plan.steps:
            raise ValueError(kept["taken"])
        if not hmac.compare_digest(kept["data"], digest_of_data(self.stepper, kept["key"])):
            raise CheckpointError(
                "The checkpoint is of a run on other data.",
                fix="pass the data that the run began with, in the same order; another run is charged on its own.",
            )

    def _take(self, kept: dict[str, Any], *, first: bool) -> None:
        self.stepper.model.load_state_dict(kept["model"])
        self.optimizer.load_state_dict(kept["optimizer"])
        self.stepper.clips = kept["clips"]
        device = next(self.stepper.model.parameters()).device
        if isinstance(self.stepper.noise, Correlated):
            self.stepper.noise.past = {step: [each.to(device) for each in row] for step, row in kept["noises"]}
        if self.stepper.glance is not None:
            self.stepper.glance.noisy, self.stepper.glance.clips, self.stepper.glance.scales = kept["glance"]
        if first:
            torch.set_rng_state(kept["random"])
            if kept["devices"] and torch.cuda.is_available():
                torch.cuda.set_rng_state_all(kept["devices"])


def gone_on(ledger: Ledger, state: State) -> None:
    """Note from which state a resumed run goes on; refuse if it went on from another or a later one, or ended.

    A step from the same state adds the same noise to the same sum. From another one it has fresh noise, and many of
    those could be averaged: each is a release of its own, and one was charged. The note is a digest under the key of
    the run. The ledger appends one entry at a time, so of several that try, one comes first.
    """
    receipt = state.receipt
    if receipt is None:
        return
    if _released(ledger, receipt) is not None:
        raise CheckpointError(
            "The run of this checkpoint ended, and its parameters were released: other steps were not charged.",
            fix="use those parameters, or start another run, which is charged on its own.",
        )
    begins = f"training {receipt.hash[:32]}: step "
    name = f"{begins}{state.taken} from {_digest_of_state(state).hex()}"
    for told in _notes(ledger, begins):
        if int(told.split(" ")[0]) > state.taken:
            raise CheckpointError(
                "The run went on from a later checkpoint before: steps that it took would be taken again.",
                fix="resume the newest checkpoint, or start another run, which is charged on its own.",
            )
    if name.removeprefix(begins) not in _notes(ledger, begins):
        ledger.charge(NOTHING, purpose="resume a training", who=receipt.who, request=name)
    first = next(told for told in _notes(ledger, begins) if told.startswith(f"{state.taken} "))
    if first != name.removeprefix(begins):
        raise CheckpointError(
            "The run went on from this step before, with another model or optimizer: its noise would be drawn anew.",
            fix="go on with everything as it was then, or start another run, which is charged on its own.",
        )


def _notes(ledger: Ledger, begins: str) -> list[str]:
    named = (entry.content["request"] for entry in ledger.entries() if entry.kind == CHARGE)
    return [name.removeprefix(begins) for name in named if name is not None and name.startswith(begins)]


def _digest_of_state(state: State) -> bytes:
    digest = hmac.new(derive(state.key, "state", size=32), digest_of_parameters(state.stepper.model), hashlib.sha256)
    digest.update(repr(state.stepper.clips).encode())
    for leaf in trees.tree_leaves(state.optimizer.state_dict()):
        if isinstance(leaf, torch.Tensor):
            digest.update(leaf.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        elif leaf is None or isinstance(leaf, (bool, int, float, str)):
            digest.update(repr(leaf).encode())
    return digest.digest()


def finished(ledger: Ledger, receipt: Receipt, model: torch.nn.Module) -> None:
    """Note a digest of the parameters that the run released; refuse if others were released before."""
    mine = digest_of_parameters(model).hex()
    with contextlib.suppress(InvalidParameterError):  # noted before
        ledger.record(receipt, mine, description="SHA-256 of the trained parameters")
    if _released(ledger, receipt) != fingerprint(mine):
        raise CheckpointError(
            "This run ended before with other parameters: these are a second release, and one was charged.",
            fix="use the parameters of the first; another run is charged on its own.",
        )


def _released(ledger: Ledger, receipt: Receipt) -> str | None:
    """The digest that was noted for the end of a run."""
    noted = (entry for entry in ledger.entries() if entry.kind == RELEASE)
    return next((entry.content["digest"] for entry in noted if entry.content["charge"] == receipt.sequence), None)


def _receipt(ledger: Ledger, kept: list[Any]) -> Receipt:
    sequence, digest = kept
    entry = next((entry for entry in ledger.entries() if entry.sequence == sequence), None)
    if entry is None or entry.kind != CHARGE or entry.hash != digest:
        raise CheckpointError(
            "The run of this checkpoint was not charged to this ledger.",
            fix="resume it with the ledger that it was charged to.",
        )
    return Receipt.of(entry, from_wire(entry.content["event"]), ledger.terms)
