"""Checkpoints, and runs that go on from them bit for bit.

Files that a run can go on from, bit for bit: tensors and JSON, and nothing that could run code.

The layout is that of safetensors (:mod:`defocus.learning.tensor_files`). The header's ``__metadata__`` holds everything
that is no tensor as JSON text, and a SHA-256 digest of all the rest.

A checkpoint is *secret*. It holds the key of the run, from which sampling and noise follow: who has it can take the
noise off everything that the run released. Its file is readable by its owner only (mode 0600); delete it when the run
is over.

Settings, data and ledger are compared with those of the run, and others are refused. Steps that were taken after a
checkpoint are taken again, and must come to the same sums: they get the same noise, and tell nothing new. Any other
sum is refused, since a second run would have to be charged: see :mod:`defocus.learning.run_log`. A checkpoint belongs
to the log of its run, and is of no use without it.

Sums come out as they did where arithmetic repeats itself: on a CPU with as many threads as before, for shapes of
batches that were seen before the checkpoint (for new ones the fastest way to add up is measured anew, and ways round
differently; ``fit`` writes a checkpoint when that happened), and with random draws of models and data made by torch.
On a GPU that is not sure unless ``torch.use_deterministic_algorithms`` is set. Where sums do not repeat themselves, a
run goes on from a checkpoint that was written after its last step, and from no other.
"""

import contextlib
import errno
import hashlib
import hmac
import json
import math
import os
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch.utils import _pytree as trees

from defocus.errors import CheckpointError, DefocusError, InvalidParameterError
from defocus.learning.accountant import Plan
from defocus.learning.noise import KEY_BYTES, Correlated, derive
from defocus.learning.run_log import BEFORE_THE_END, Log, Mark, cut_off, end_of
from defocus.learning.step import Stepper
from defocus.learning.tensor_files import framed, is_kept, laid_out, taken_apart, tensor_at
from defocus.ledger import Ledger, Receipt
from defocus.ledger.entries import Entry, canonical
from defocus.ledger.lock import sync_directory
from defocus.ledger.runs import charge_of, run_file
from defocus.noise.ranges import Integers
from defocus.privacy.wire import to_wire

__all__ = [
    "State",
    "agreed",
    "check_place",
    "digest_of_data",
    "digest_of_parameters",
    "digest_of_run",
    "ended",
    "key_in",
    "load",
    "save",
    "tree_in",
    "tree_out",
]


_FORMAT = "defocus training run 1"


def check_place(path: str | Path) -> None:
    """Refuse a place where no checkpoint can be written, before anything is charged for one.

    Several processes of one run ask this at once, so each tries it with a file of its own.
    """
    place = Path(path)
    with _written(place):
        with contextlib.suppress(FileNotFoundError):
            _temporary(place).unlink()
        handle, tried = tempfile.mkstemp(prefix=f"{place.name}.", dir=place.parent)
        os.close(handle)
        Path(tried).unlink()


def save(path: str | Path, content: dict[str, Any]) -> None:
    """Put a tree of numbers, texts, lists, mappings and tensors into a file, whole or not at all."""
    tensors: list[torch.Tensor] = []
    state = json.dumps(tree_out(content, tensors), allow_nan=False)
    header, blocks = laid_out({str(i): tensor for i, tensor in enumerate(tensors)})
    digest = hashlib.sha256(_vouched(state, header))
    for block in blocks:
        digest.update(block)
    header["__metadata__"] = {"format": _FORMAT, "state": state, "digest": digest.hexdigest()}
    _write(Path(path), framed(header, blocks))


def load(path: str | Path) -> dict[str, Any]:
    """The tree that :func:`save` put there; a file that is damaged or something else is refused."""
    try:
        return _read(path)
    except DefocusError:
        raise
    except OSError as error:
        raise _unreadable(path, error) from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError, RecursionError, struct.error):
        raise _damaged(path) from None


def key_in(path: str | Path) -> bytes:
    """The key of the run that wrote a checkpoint, read off its header; nothing is vouched for."""
    try:
        header, _ = taken_apart(path)
        entries = dict(json.loads(header["__metadata__"]["state"])["map"])
        return bytes.fromhex(entries["key"]["bytes"])
    except OSError as error:
        raise _unreadable(path, error) from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, struct.error):
        raise _damaged(path) from None


def tree_out(value: Any, tensors: list[torch.Tensor]) -> Any:  # noqa: PLR0911 -- one kind a line
    """A tree with JSON types only; its tensors are put into the list, and referred to by number.

    >>> tree_out({"lr": 0.1, "betas": (0.9, 0.999)}, [])
    {'map': [['lr', 0.1], ['betas', {'tuple': [0.9, 0.999]}]]}
    """
    if value is None or isinstance(value, bool | str) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if is_kept(value):
        tensors.append(value.detach())
        return {"tensor": len(tensors) - 1}
    if isinstance(value, list):
        return [tree_out(inner, tensors) for inner in value]
    if isinstance(value, tuple):
        return {"tuple": [tree_out(inner, tensors) for inner in value]}
    if isinstance(value, dict) and all(isinstance(key, str | int) for key in value):
        return {"map": [[key, tree_out(each, tensors)] for key, each in value.items()]}
    raise CheckpointError(
        f"A checkpoint holds numbers, texts and tensors, but it was given a {type(value).__name__}.",
        fix="keep state_dicts of tensors and numbers in more=, and use an optimizer whose state_dict() is one.",
    )


def tree_in(value: Any, tensors: list[torch.Tensor]) -> Any:  # noqa: PLR0911 -- one kind a line
    """The tree that :func:`tree_out` described."""
    if isinstance(value, list):
        return [tree_in(inner, tensors) for inner in value]
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "tensor":
        return tensors[inner]
    if kind == "tuple":
        return tuple(tree_in(part, tensors) for part in inner)
    if kind == "map":
        return {key: tree_in(each, tensors) for key, each in inner}
    if kind == "bytes":
        return bytes.fromhex(inner)
    if kind == "float":
        return float(inner)
    raise ValueError(kind)


def _read(path: str | Path) -> dict[str, Any]:
    header, body = taken_apart(path)
    told = header.pop("__metadata__")
    if told["format"] != _FORMAT:
        raise CheckpointError(
            "This file is not a checkpoint of a training run of this version.", fix="pass a file that save() wrote."
        )
    digest = hashlib.sha256(_vouched(told["state"], header))
    digest.update(body.data)
    if digest.hexdigest() != told["digest"]:
        raise ValueError(digest)
    tensors = [tensor_at(header[str(i)], body) for i in range(len(header))]
    state = tree_in(json.loads(told["state"]), tensors)
    if not isinstance(state, dict):
        raise TypeError(state)
    return state


def _vouched(state: str, header: dict[str, Any]) -> bytes:
    return json.dumps([_FORMAT, state, header], sort_keys=True).encode() + b"\n"


def _write(path: Path, parts: list[bytes]) -> None:
    temporary = _temporary(path)
    with _written(path):
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(handle, "wb") as file:  # noqa: PTH123 -- a descriptor, for its permissions
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)


def _temporary(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


@contextlib.contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        yield
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {path} cannot be written: {error.strerror or type(error).__name__}.",
            fix="check that its folder exists and has room.",
        ) from None


def _unreadable(path: str | Path, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"The checkpoint {path} cannot be read: {error.strerror or type(error).__name__}.", fix="check its path."
    )


def _damaged(path: str | Path) -> CheckpointError:
    return CheckpointError(
        f"The checkpoint {path} is damaged: it is cut off, altered, or was never one.",
        fix="resume from an older one, or start a new run, which is charged on its own.",
    )


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
    if stepper.canaries is not None:
        told.append(["canaries", stepper.canaries.count, stepper.canaries.changes])
    return hashlib.sha256(canonical(told).encode()).digest()


def digest_of_data(stepper: Stepper, key: bytes) -> bytes:
    """A digest, under the key of the run, of how many examples and units there are and of 256 examples among them.

    Of a dataset that changes its examples at random, the numbers only.
    """
    data, units = stepper.data, stepper.units
    secret = derive(key, "data", size=32)
    numbers = _spread(data.length)
    first, second = (_digest_of_examples(stepper, numbers, secret) for _ in range(2))
    owners = units.examples_of(_spread(units.count))[0]
    digest = hmac.new(secret, canonical([data.length, units.count]).encode(), hashlib.sha256)
    digest.update(first if first == second else b"")
    digest.update(np.ascontiguousarray(owners).data)
    return digest.digest()


def _spread(length: int) -> Integers:
    """Numbers below a length, evenly spread; none below zero."""
    return np.unique(np.linspace(0, length, _LOOKED_AT, endpoint=False).astype(np.int64))[:length]


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
    for name, value in model.state_dict().items():
        digest.update(name.encode())
        if isinstance(value, torch.Tensor):
            digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
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
    passed: int = 0

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
                "passed": self.passed,
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
                "canaries": None if self.stepper.canaries is None else self.stepper.canaries.state(),
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
        self.key, self.taken, self.passed = kept["key"], kept["taken"], kept.get("passed", 0)
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
            self.stepper.noise.past = {step: [tensor.to(device) for tensor in row] for step, row in kept["noises"]}
        if self.stepper.glance is not None:
            self.stepper.glance.noisy, self.stepper.glance.clips, self.stepper.glance.scales = kept["glance"]
        if self.stepper.canaries is not None:
            self.stepper.canaries.load(kept["canaries"])


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
    receipt = charge_of(ledger, *kept)
    if receipt is None:
        raise CheckpointError(
            "The run of this checkpoint was not charged to this ledger.",
            fix="resume it with the ledger that it was charged to.",
        )
    return receipt


def _log(ledger: Ledger, receipt: Receipt, release: Entry | None, kept: dict[str, Any], *, most: int) -> Log:
    """The log of the run: beside the ledger, or where the checkpoint says if the ledger is no file.

    That of a run that has ended must go as far as the ledger says, or as the run itself where it does not say.
    """
    path, number, code = kept["log"]
    there, end = run_file(ledger, receipt.sequence, receipt.hash) or Path(path), _end(release)
    log = Log.resume(there, receipt, kept["key"], Mark(number, code), most=most, end=end)
    if release is not None and end is None and log.newest < most:
        log.close()
        raise cut_off(there, BEFORE_THE_END)
    return log


def _end(release: Entry | None) -> Mark | None:
    """Where the ledger says that the log of a run ends."""
    match None if release is None else release.content["value"]:
        case [{"steps": int(steps), "log": str(code)}]:
            return Mark(steps, bytes.fromhex(code))
        case _:
            return None
