"""The state of a run: what a checkpoint holds, and what must agree before one is used."""

import contextlib
import hashlib
import hmac
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch.utils import _pytree as trees

from defocus.errors import CheckpointError, InvalidParameterError
from defocus.learning.accountant import Plan
from defocus.learning.checkpoints import key_in, load, save
from defocus.learning.noise import KEY_BYTES, Correlated, derive
from defocus.learning.run_log import BEFORE_THE_END, Log, Mark, cut_off, end_of
from defocus.learning.step import Stepper
from defocus.ledger import Ledger, Receipt
from defocus.ledger.entries import Entry, canonical
from defocus.ledger.runs import charge_of, run_file
from defocus.noise.ranges import Integers
from defocus.privacy.wire import to_wire

__all__ = ["State", "agreed", "digest_of_data", "digest_of_parameters", "digest_of_run", "ended"]

_LOOKED_AT = 256


def digest_of_run(plan: Plan, stepper: Stepper, optimizer: torch.optim.Optimizer) -> bytes:
    """A digest of everything public that a run depends on: plan, clipping, kinds and shapes of its parts."""
    source = stepper.noise.source if isinstance(stepper.noise, Correlated) else stepper.noise
    told = [
        [str(plan.unit), repr(plan.price), plan.size, repr(plan.sampling), repr(plan.ratio)],
        [hashlib.sha256(repr(plan.factors).encode()).hexdigest(), list(plan.shares), repr(plan.strategy)],
        to_wire(plan.event),
        [repr(stepper.clipping), str(stepper.precision), type(source).__name__],
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


def agreed(plan: Plan, stepper: Stepper, optimizer: torch.optim.Optimizer) -> None:
    """Refuse processes that do not hold the same settings, parameters and data: before anything is charged."""
    if stepper.ranks.world > 1:
        stepper.ranks.agree(digest_of_run(plan, stepper, optimizer), "settings")
        stepper.ranks.agree(digest_of_parameters(stepper.model), "parameters to begin with")
        stepper.ranks.agree(digest_of_data(stepper, bytes(KEY_BYTES)), "data, in the same order")


@final
@dataclass(slots=True)
class State:
    """A run at one moment."""

    stepper: Stepper
    optimizer: torch.optim.Optimizer
    run: bytes
    key: bytes = field(repr=False)
    taken: int
    receipt: Receipt | None
    log: Log | None

    def save(self, path: str | Path, more: dict[str, Any]) -> None:
        """Write it, secret as it is, to a file for its owner only. A file that another run wrote is not overwritten."""
        there = Path(path)
        if there.exists() and key_in(there) != self.key:
            raise CheckpointError(
                f"{there} holds a checkpoint of another run.", fix="resume that run, or name another file."
            )
        glance, receipt, log = self.stepper.glance, self.receipt, self.log
        if log is not None:
            if log.path is None and receipt is not None:
                log.keep(there.resolve().with_name(f"{there.name}.run-{receipt.hash[:16]}"))
            log.sync()
        save(
            there,
            {
                "run": self.run,
                "data": digest_of_data(self.stepper, self.key),
                "key": self.key,
                "taken": self.taken,
                "receipt": None if receipt is None else [receipt.sequence, receipt.hash],
                "log": None if log is None else [str(log.path), *log.mark],
                "model": dict(self.stepper.model.state_dict()),
                "optimizer": self.optimizer.state_dict(),
                "clips": self.stepper.clips,
                "chunk": self.stepper.chunk,
                "noises": list(map(list, self.stepper.noise.past.items()))
                if isinstance(self.stepper.noise, Correlated)
                else [],
                "glance": None if glance is None else [glance.noisy, glance.clips, glance.scales],
                "more": more,
                "tuning": dict(self.stepper.gradients.tuning),
            },
        )

    def load(self, path: str | Path, ledger: Ledger | None) -> tuple[dict[str, Any], dict[str, str]]:
        """Take over the state in a file, if it is of this run; otherwise nothing is changed.

        Returns what a loop wanted kept, and the ways in which gradients were added up, which round differently.
        """
        kept = load(path)
        try:
            self._compare(kept)
            if ledger is not None:
                self.receipt, release = _receipt(ledger, kept["receipt"])
                self.log = _log(ledger, self.receipt, release, kept, most=self.stepper.plan.steps)
            self._take(kept)
        except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
            if isinstance(error, InvalidParameterError):
                raise
            raise CheckpointError(
                f"The checkpoint {path} does not hold the state of such a run.", fix="pass a file that save() wrote."
            ) from None
        self.key, self.taken = kept["key"], kept["taken"]
        return dict(kept["more"]), dict(kept["tuning"])

    def _compare(self, kept: dict[str, Any]) -> None:
        if kept["run"] != self.run:
            raise CheckpointError(
                "The checkpoint is of another run: its model, optimizer, price or other settings are not these.",
                fix="make the Trainer with the same arguments as the run that wrote it.",
            )
        if len(kept["key"]) != KEY_BYTES or not 0 <= kept["taken"] <= self.stepper.plan.steps:
            raise ValueError(kept["taken"])
        if not hmac.compare_digest(kept["data"], digest_of_data(self.stepper, kept["key"])):
            raise CheckpointError(
                "The checkpoint is of a run on other data.",
                fix="pass the data that the run began with, in the same order; another run is charged on its own.",
            )

    def _take(self, kept: dict[str, Any]) -> None:
        self.stepper.model.load_state_dict(kept["model"])
        self.optimizer.load_state_dict(kept["optimizer"])
        self.stepper.clips, self.stepper.chunk = kept["clips"], kept["chunk"]
        device = next(self.stepper.model.parameters()).device
        if isinstance(self.stepper.noise, Correlated):
            self.stepper.noise.past = {step: [each.to(device) for each in row] for step, row in kept["noises"]}
        if self.stepper.glance is not None:
            self.stepper.glance.noisy, self.stepper.glance.clips, self.stepper.glance.scales = kept["glance"]


def ended(ledger: Ledger, receipt: Receipt, model: torch.nn.Module) -> None:
    """Note the end of a run, once: a digest of the parameters that it released, and where its log ends.

    The log of a ledger that is no file is not looked for.
    """
    path = run_file(ledger, receipt.sequence, receipt.hash)
    end = None if path is None else end_of(path)
    told = {"parameters": digest_of_parameters(model).hex()}
    noted = {} if end is None else {"steps": end.steps, "log": end.code.hex()}
    with contextlib.suppress(InvalidParameterError):  # noted before, by the run that this one repeated
        ledger.record(receipt, told | noted, description="SHA-256 of the trained parameters", keep=True)


def _receipt(ledger: Ledger, kept: list[Any]) -> tuple[Receipt, Entry | None]:
    """The receipt of the charge, and the entry that notes the end of the run, if it has ended."""
    found = charge_of(ledger, *kept)
    if found is None:
        raise CheckpointError(
            "The run of this checkpoint was not charged to this ledger.",
            fix="resume it with the ledger that it was charged to.",
        )
    return found


def _log(ledger: Ledger, receipt: Receipt, release: Entry | None, kept: dict[str, Any], *, most: int) -> Log:
    """The log of the run: beside the ledger, or where the checkpoint says if the ledger is no file.

    That of a run that has ended must go as far as the ledger says, or as the run itself where it does not say.
    """
    path, number, code = kept["log"]
    there, end = run_file(ledger, receipt.sequence, receipt.hash) or Path(path), _end(release)
    found = Log.resume(there, receipt, kept["key"], Mark(number, code), most=most, end=end)
    if release is not None and end is None and found.newest < most:
        found.close()
        raise cut_off(there, BEFORE_THE_END)
    return found


def _end(release: Entry | None) -> Mark | None:
    """Where the ledger says that the log of a run ends."""
    match None if release is None else release.content["value"]:
        case [{"steps": int(steps), "log": str(code)}]:
            return Mark(steps, bytes.fromhex(code))
        case _:
            return None
