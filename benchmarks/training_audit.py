"""What one audited run of MNIST shows of its epsilon, and what the audit costs.

    python benchmarks/training_audit.py FOLDER [--canaries 1000] [--seeds 3] [--steps 150] [--batch 2000]

FOLDER holds the files of MNIST as distributed, gzipped. *White box*: a perceptron with one hidden layer, with and
without canaries, processor time of all steps, and of the bound apart. *Black box*: a softmax regression of 2 000 images
in full batches, of which only the last weights are seen; canaries are images with one bright pixel that all real images
have black, labelled 0, and the score is their margin.
"""

import argparse
import gzip
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

import defocus as dp
from defocus import audit

DELTA = 1e-5
BRIGHT = 100.0
PIXELS, RUNS = 60, 16


def images(folder: Path, kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Images as rows from 0 to 1, and their classes."""
    with gzip.open(folder / f"{kind}-images-idx3-ubyte.gz") as file:
        x = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(folder / f"{kind}-labels-idx1-ubyte.gz") as file:
        y = np.frombuffer(file.read(), np.uint8, offset=8)
    return torch.from_numpy(x.astype(np.float32) / 255), torch.from_numpy(y.astype(np.int64))


def white(asked: argparse.Namespace, epsilon: float, seed: int, canaries: int | None) -> tuple[float, float, float]:
    """Processor time of the steps and of the bound, and the bound, or the accuracy of a run without canaries."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(784, asked.hidden), nn.Tanh(), nn.Linear(asked.hidden, 10))
    run = dp.learning.Trainer(
        net, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=asked.rate, momentum=0.9), asked.train,
        unit=dp.rows(), epsilon=epsilon, delta=DELTA, batch_size=asked.batch, steps=asked.steps, metrics="nothing",
        scratch="MNIST is public", audit=canaries,
    )  # fmt: skip
    start = time.process_time()
    for batch in run.batches():
        run.step(batch)
    steps = time.process_time() - start
    start = time.process_time()
    found = run.audited()
    x, y = asked.test
    with torch.no_grad():
        accuracy = float((net(x).argmax(1) == y).float().mean())
    asked.accuracies.setdefault((epsilon, canaries is not None), []).append(accuracy)
    return steps, time.process_time() - start, 0.0 if found is None else found.epsilon_lower


def black(asked: argparse.Namespace, epsilon: float, steps: int) -> audit.OneRun:
    """Runs of softmax regression, of which the last weights are seen."""
    x, y = (part[:2000] for part in asked.train)
    black_pixels = torch.nonzero(asked.train[0].sum(0) == 0)[:PIXELS, 0].tolist()
    size = len(x) + len(black_pixels)
    event = []

    def release(planted: list[int]) -> torch.Tensor:
        crafted = torch.zeros(len(planted), 784)
        crafted[range(len(planted)), planted] = BRIGHT
        net = nn.Linear(784, 10)
        nn.init.zeros_(net.weight)
        nn.init.zeros_(net.bias)
        run = dp.learning.Trainer(
            net, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.1),
            (torch.cat([x, crafted]), torch.cat([y, torch.zeros(len(planted), dtype=torch.int64)])),
            unit=dp.rows(), epsilon=epsilon, delta=DELTA, batch_size=size, steps=steps, size=size,
            metrics="nothing", scratch="MNIST is public",
        )  # fmt: skip
        run.fit(progress=False)
        event[:] = [run.plan.event]
        return net.weight.detach()

    def margin(weights: torch.Tensor, pixel: int) -> float:
        return float(weights[0, pixel] - weights[1:, pixel].mean())

    release([])
    return audit.run(release, black_pixels, margin, event=event[0], delta=DELTA, runs=RUNS)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for name, usual in (("canaries", 1000), ("seeds", 3), ("steps", 150), ("batch", 2000), ("hidden", 100)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--rate", type=float, default=0.5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0, 8.0])
    asked = parser.parse_args()
    torch.set_num_threads(1)
    asked.train, asked.test, asked.accuracies = images(asked.folder, "train"), images(asked.folder, "t10k"), {}
    print(f"defocus, torch {torch.__version__}; {asked.canaries} canaries, {asked.steps} steps of {asked.batch}")
    print("| charged | bounds at 95 % | CPU s without | with | of that the bound | accuracy without | with |")
    print("|---|---|---|---|---|---|---|")
    white(asked, 4.0, 0, None)  # the first run makes what others find ready
    for epsilon in asked.epsilons:
        plain = [white(asked, epsilon, seed, None) for seed in range(asked.seeds)]
        seen = [white(asked, epsilon, seed, asked.canaries) for seed in range(asked.seeds)]
        without, steps, bound = (
            statistics.median(column)
            for column in ([run[0] for run in plain], [run[0] for run in seen], [run[1] for run in seen])
        )
        told = ", ".join(f"{run[2]:.2f}" for run in seen)
        ends = [statistics.median(asked.accuracies[epsilon, audited]) for audited in (False, True)]
        print(
            f"| {epsilon:g} | {told} | {without:.1f} | {steps + bound:.1f} | {bound:.1f} | {ends[0]:.4f} |"
            f" {ends[1]:.4f} |",
            flush=True,
        )
    print(f"\nblack box, {PIXELS} canaries in each of {RUNS} runs, epsilon 10:")
    for steps in (1, 10):
        print(f"{steps} steps: {black(asked, 10.0, steps)}", flush=True)


if __name__ == "__main__":
    main()
