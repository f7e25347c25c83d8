"""Private autoencoders: what models learn from synthetic images of MNIST, and transitions of synthetic sequences.

Classifiers are trained on synthetic images and tested on real ones: a linear model and a small convolutional network.
Beside them, the same on synthetic images of an autoencoder trained without noise or clipping, and on real images.

    python benchmarks/private_autoencoder.py images FOLDER [--epsilon 1 3 10] [--seeds 3] [--out results.json]
    python benchmarks/private_autoencoder.py tuning
    python benchmarks/private_autoencoder.py sequences

FOLDER holds the four files of MNIST as distributed, gzipped. ``tuning`` does the same on other images, by which the
learning rate and the sizes of the networks were chosen: 1200 handwritten digits of scikit-learn, of 8 by 8 pixels,
turned, sheared and shifted at random to make 60 000, and tested on the digits that are left.
"""

import argparse
import itertools
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))

from mnist import images

import defocus as dp
from defocus.synthesis import autoencoder
from defocus.synthesis.examples import ExampleGenerator

DELTA, DRAWN, EPOCHS = 1e-5, 20_000, 3
FORM = dp.synthesis.Images((28, 28), (0, 1))
TRANSITIONS = np.array([[0.1, 0.6, 0.1, 0.2], [0.3, 0.1, 0.5, 0.1], [0.1, 0.1, 0.1, 0.7], [0.6, 0.2, 0.1, 0.1]])
ALPHABET, LENGTH, GOES_ON = "ACGT", 16, 0.95


def taught(pixels: Any, labels: Any, test: tuple[torch.Tensor, torch.Tensor]) -> dict[str, float]:
    """What a linear model and a small network learn, as the share of real test images that they tell right."""
    x, y = torch.as_tensor(np.asarray(pixels)), torch.as_tensor(np.asarray(labels))
    linear = LogisticRegression(max_iter=60).fit(x.flatten(1).numpy(), y.numpy())
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(
            nn.Conv2d(1, 16, 5, 2, 2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(1568, 10),
        )
        optimizer = torch.optim.Adam(network.parameters(), 1e-3)
        for _ in range(EPOCHS * len(x) // 128):
            some = torch.randint(len(x), (128,))
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x[some][:, None]), y[some]).backward()
            optimizer.step()
    with torch.no_grad():
        right = (network(test[0][:, None]).argmax(1) == test[1]).double().mean()
    return {"linear": float(linear.score(test[0].flatten(1).numpy(), test[1].numpy())), "cnn": float(right)}


def bare(x: torch.Tensor, y: torch.Tensor, seed: int, steps: int = 2400, batch: int = 512) -> ExampleGenerator:
    """The same autoencoder without clipping and noise."""
    torch.manual_seed(seed)
    network = autoencoder.network_of(FORM, 10)
    pixels, label = torch.from_numpy(FORM.encode(x)[0]), torch.eye(10)[y]
    optimizer = torch.optim.Adam(network.parameters(), 2e-3)
    for _ in range(steps):
        some = torch.randint(len(x), (batch,))
        optimizer.zero_grad()
        network(pixels[some], label[some]).mean().backward()
        optimizer.step()
    return ExampleGenerator(FORM, autoencoder.decoder_of(network), tuple(range(10)))


def private(x: torch.Tensor, y: torch.Tensor, epsilon: float, **more: Any) -> ExampleGenerator:
    """What the house makes, with a ledger of its own."""
    with tempfile.TemporaryDirectory() as home:
        ledger, labels = Path(home, "images.ledger"), {"labels": y, "classes": range(10)}
        wanted = dp.synthesis.ExampleSynthesiser(x, FORM, unit=dp.rows(), ledger=ledger, **labels)
        return wanted.fit(epsilon=epsilon, delta=DELTA, progress=False, **more)


def digits(number: int, seed: int, *, test: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Other images: digits of scikit-learn, turned, sheared, scaled and shifted at random."""
    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.images))
    chance = torch.Generator().manual_seed(seed)
    own = torch.from_numpy(order[1200:] if test else order[:1200])
    chosen = own[torch.randint(len(own), (number,), generator=chance)]
    far = [(torch.rand(number, generator=chance) * 2 - 1) * most for most in (0.2, 0.15, 0.15, 0.2, 0.12, 0.12)]
    angle, wide, high, shear, right, down = far
    first = torch.stack([1.35 * (1 + wide) * angle.cos(), 1.35 * (shear - angle.sin()), right], 1)
    second = torch.stack([1.35 * angle.sin(), 1.35 * (1 + high) * angle.cos(), down], 1)
    maps, parts = torch.stack([first, second], 1), []
    large = nn.functional.interpolate(torch.from_numpy(found.images / 16).float()[:, None], size=28, mode="bicubic")
    for start in range(0, number, 4096):
        part = maps[start : start + 4096]
        grid = nn.functional.affine_grid(part, [len(part), 1, 28, 28], align_corners=False)
        parts.append(nn.functional.grid_sample(large[chosen[start : start + 4096]], grid, align_corners=False)[:, 0])
    return ((torch.cat(parts) - 0.35) * 2.2 + 0.35).clamp(0, 1), torch.from_numpy(found.target)[chosen]


def of_images(data: Any, test: Any, epsilons: list[float], seeds: int) -> list[dict[str, Any]]:
    """One row for each model and seed."""
    rows: list[dict[str, Any]] = [{"model": "real images", **taught(data[0][:DRAWN], data[1][:DRAWN], test)}]
    print(rows[-1], flush=True)
    for seed in range(seeds):
        for epsilon in [None, *epsilons]:
            started = time.process_time()
            made = bare(*data, seed) if epsilon is None else private(*data, epsilon)
            seconds = time.process_time() - started
            pixels, labels = made.sample(DRAWN)
            name = "without privacy" if epsilon is None else f"epsilon {epsilon:g}"
            rows.append({"model": name, "seconds": seconds, **taught(pixels, labels, test)})
            print(rows[-1], flush=True)
    return rows


def chains(number: int, random: np.random.Generator) -> list[str]:
    """Sequences of a Markov chain, each of which ends with the same probability after every symbol."""
    found = []
    for _ in range(number):
        own = [int(random.integers(4))]
        while len(own) < LENGTH and random.random() < GOES_ON:
            own.append(int(random.choice(4, p=TRANSITIONS[own[-1]])))
        found.append("".join(ALPHABET[i] for i in own))
    return found


def transitions(sequences: list[str]) -> Any:
    """How often each symbol follows each."""
    counts = np.zeros((4, 4))
    for own in sequences:
        for one, two in itertools.pairwise(own):
            counts[ALPHABET.index(one), ALPHABET.index(two)] += 1
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def of_sequences(seeds: int) -> list[dict[str, Any]]:
    """How far transitions are from the true ones: the largest total variation distance of a row."""
    rows = []
    for seed in range(seeds):
        real = chains(5000, np.random.default_rng(seed))
        for epsilon in (1.0, 3.0, 10.0):
            with tempfile.TemporaryDirectory() as home:
                form, started = dp.synthesis.Sequences(ALPHABET, LENGTH), time.process_time()
                wanted = dp.synthesis.ExampleSynthesiser(real, form, unit=dp.rows(), ledger=Path(home, "a.ledger"))
                made = wanted.fit(epsilon=epsilon, delta=DELTA, progress=False)
            seconds = time.process_time() - started
            drawn, _ = made.sample(5000)
            apart = [float(np.abs(transitions(own) - TRANSITIONS).sum(axis=1).max()) / 2 for own in (drawn, real)]
            lengths = [float(np.mean([len(one) for one in own])) for own in (drawn, real)]
            rows.append({"epsilon": epsilon, "seconds": seconds, "apart": apart, "lengths": lengths})
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("images", "tuning", "sequences"))
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--epsilon", type=float, nargs="*", default=[3.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.what == "sequences":
        rows = of_sequences(asked.seeds)
    elif asked.what == "tuning":
        rows = of_images(digits(60_000, 1, test=False), digits(10_000, 2, test=True), asked.epsilon, asked.seeds)
    else:
        data, test = (
            tuple(images(asked.folder, f"{part}-{what}") for what in ("images-idx3-ubyte", "labels-idx1-ubyte"))
            for part in ("train", "t10k")
        )
        rows = of_images(data, test, asked.epsilon, asked.seeds)
    if asked.out is not None:
        asked.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
