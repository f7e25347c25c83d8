"""MNIST at epsilon 3 and delta 1e-5: private training on scattering features, through the trainer and its ledger.

Features are fixed wavelets (nothing in them is learned), normalised within each image. A model on top is trained with
DP-SGD in large Poisson batches; what is tested is the average of the last parameters, which is post-processing.
``--sweep`` compares settings first, on 10 000 training images held out, and tests the best; such a search is not
private by itself: it says what is possible at this epsilon with known settings
(:func:`defocus.learning.hyperparameters` pays for one).

    python benchmarks/mnist.py FOLDER [--device cuda] [--model linear] [--runs 3] [--out results.json]

FOLDER holds the four files of MNIST as distributed, gzipped. Each run has a ledger of its own.
Reference: Tramèr, Boneh (2021), Differentially private learning needs better features: 98.7 % at epsilon 3.
"""

import argparse
import copy
import gzip
import itertools
import json
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))

from mnist_parts.scattering import CHANNELS, scattering

import defocus as dp

GROUPS = 27
HELD_OUT = 10_000
CHANGED = {"rate": float, "epochs": float, "batch_size": int, "max_grad_norm": float, "averaged": float}
"""What the command line may change in a recipe."""


@final
@dataclass(frozen=True, slots=True)
class Recipe:
    """The settings of a run: all public."""

    model: str = "linear"
    batch_size: int = 8192
    epochs: float = 60.0
    rate: float = 8.0
    momentum: float = 0.9
    max_grad_norm: float = 0.1
    averaged: float = 0.95
    """How much of the running average of parameters is kept at each step."""
    decay: bool = True
    """Whether the learning rate falls to a tenth on the way, along a cosine."""


RECIPES = {
    "linear": Recipe(),
    "cnn": Recipe(model="cnn", rate=4.0, epochs=60.0),
}


def images(folder: Path, name: str) -> torch.Tensor:
    """One of the files as distributed: pixels from 0 to 1, or labels."""
    with gzip.open(folder / f"{name}.gz") as file:
        raw = file.read()
    if "images" in name:
        pixels = np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 28, 28)
        return torch.from_numpy(pixels.copy()).float() / 255
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=8).astype(np.int64))


def features(pixels: torch.Tensor, device: str) -> torch.Tensor:
    """Scattering features, normalised in groups of channels within each image."""
    parts = []
    for part in pixels.split(2048):
        found = scattering(part.to(device))
        parts.append(nn.functional.group_norm(found, GROUPS))
    return torch.cat(parts)


def network(kind: str) -> nn.Module:
    """A small model on 81 channels of 7 times 7."""
    if kind == "linear":
        model = nn.Sequential(nn.Flatten(), nn.Linear(CHANNELS * 49, 10))
        nn.init.zeros_(model[1].weight)
        nn.init.zeros_(model[1].bias)
        return model
    return nn.Sequential(
        nn.Conv2d(CHANNELS, 32, 3, padding=1),
        nn.Tanh(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(32, 32, 3),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(32 * 16, 10),
    )


def accuracy(model: nn.Module, data: tuple[torch.Tensor, torch.Tensor]) -> float:
    """The share that is told right."""
    right = 0
    with torch.no_grad():
        for x, y in zip(data[0].split(2048), data[1].split(2048), strict=True):
            right += int((model(x).argmax(1) == y).sum())
    return right / len(data[1])


def trained(
    recipe: Recipe,
    data: tuple[torch.Tensor, torch.Tensor],
    test: tuple[torch.Tensor, torch.Tensor],
    budget: dp.Budget,
    device: str,
) -> dict[str, Any]:
    """One private run, with its charge, its accuracy and its time."""
    start = time.perf_counter()
    model = network(recipe.model).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=recipe.rate, momentum=recipe.momentum, nesterov=True)
    with tempfile.TemporaryDirectory() as folder:
        ledger = dp.Ledger.open(Path(folder) / "mnist.ledger", budget=budget, unit=dp.rows(), dataset="mnist")
        run = dp.learning.Trainer(
            model,
            nn.CrossEntropyLoss(),
            optimizer,
            data,
            unit=dp.rows(),
            epsilon=budget.epsilon,
            delta=budget.delta,
            max_grad_norm=recipe.max_grad_norm,
            batch_size=min(recipe.batch_size, len(data[1]) // 2),
            epochs=recipe.epochs,
            ledger=ledger,
            metrics="nothing",
            purpose="MNIST benchmark",
        )
        rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, run.plan.steps, recipe.rate / 10)
        mean = copy.deepcopy(model)
        for batch in run.batches():
            run.step(batch)
            if recipe.decay:
                rate.step()
            with torch.no_grad():
                for kept, now in zip(mean.parameters(), model.parameters(), strict=True):
                    kept.lerp_(now, 1 - min(recipe.averaged, run.steps_taken / (run.steps_taken + 9)))
        found = run.result()
        left = ledger.remaining()
        ledger.close()
    return {
        "accuracy": accuracy(mean, test),
        "accuracy of the last step": accuracy(model, test),
        "epsilon": found.epsilon,
        "delta": found.plan.delta,
        "noise": found.plan.ratio,
        "steps": found.steps,
        "charged": found.receipt is not None,
        "left in the ledger": str(left),
        "seconds": time.perf_counter() - start,
    }


def others(recipe: Recipe) -> Iterator[Recipe]:
    """Settings near a recipe."""
    for rate, epochs in itertools.product((0.25, 0.5, 1.0, 2.0), (40.0, 80.0)):
        yield Recipe(**{**asdict(recipe), "rate": recipe.rate * rate, "epochs": epochs})


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path, help="where the four files of MNIST are")
    asked.add_argument("--device", default="cpu")
    asked.add_argument("--model", choices=[*RECIPES, "all"], default="all")
    asked.add_argument("--runs", type=int, default=3)
    asked.add_argument("--epsilon", type=float, default=3.0)
    asked.add_argument("--delta", type=float, default=1e-5)
    asked.add_argument("--sweep", action="store_true", help="compare settings first, on images held out of training")
    asked.add_argument("--limit", type=int, default=None, help="use only so many training images, to try it out")
    asked.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "mnist.json")
    for name, kind in CHANGED.items():
        asked.add_argument(f"--{name}", type=kind, default=None, help="instead of the recipe's")
    given = asked.parse_args()
    start = time.perf_counter()
    x = features(images(given.folder, "train-images-idx3-ubyte")[: given.limit], given.device)
    y = images(given.folder, "train-labels-idx1-ubyte")[: given.limit].to(given.device)
    test = (
        features(images(given.folder, "t10k-images-idx3-ubyte")[: given.limit], given.device),
        images(given.folder, "t10k-labels-idx1-ubyte")[: given.limit].to(given.device),
    )
    print(f"features of {len(x) + len(test[1])} images: {time.perf_counter() - start:.1f} s", flush=True)
    cut = len(y) - min(HELD_OUT, len(y) // 5)
    budget = dp.Budget(given.epsilon, given.delta)
    changed = {name: value for name in CHANGED if (value := getattr(given, name)) is not None}
    report = Report(given.out, given.device, len(y))
    for name in RECIPES if given.model == "all" else [given.model]:
        recipe = Recipe(**{**asdict(RECIPES[name]), **changed})
        if given.sweep:
            compared = []
            for each in others(recipe):
                found = trained(each, (x[:cut], y[:cut]), (x[cut:], y[cut:]), budget, given.device)
                report.add(each, found, on="images held out")
                compared.append((found["accuracy"], each))
            recipe = max(compared, key=lambda pair: pair[0])[1]
        for _ in range(given.runs):
            report.add(recipe, trained(recipe, (x, y), test, budget, given.device), on="the test set")


@final
class Report:
    """What every run showed, printed and written as soon as it is known."""

    def __init__(self, out: Path, device: str, images: int) -> None:
        self._out = out
        versions = {"python": platform.python_version(), "torch": torch.__version__, "device": _device(device)}
        self._told: dict[str, Any] = {**versions, "images": images, "runs": []}
        out.parent.mkdir(parents=True, exist_ok=True)

    def add(self, recipe: Recipe, found: dict[str, Any], *, on: str) -> None:
        """Print and write one run."""
        print(
            f"{recipe.model:6} rate {recipe.rate:<4g} norm {recipe.max_grad_norm:<4g} epochs {recipe.epochs:<4g}:"
            f" {100 * found['accuracy']:.2f} % on {on} (last step {100 * found['accuracy of the last step']:.2f} %),"
            f" epsilon {found['epsilon']:.4f} at delta {found['delta']:g}, noise {found['noise']:.3f},"
            f" {found['steps']} steps, {found['seconds']:.0f} s",
            flush=True,
        )
        self._told["runs"].append({"recipe": asdict(recipe), "on": on, **found})
        self._out.write_text(json.dumps(self._told, indent=2) + "\n", encoding="utf-8")


def _device(name: str) -> str:
    return torch.cuda.get_device_name() if name.startswith("cuda") else platform.processor() or "cpu"


if __name__ == "__main__":
    main()
