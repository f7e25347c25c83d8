"""Federated training on MNIST, and rounds of thousands of clients in one process.

``python benchmarks/federated_training.py mnist FOLDER`` splits MNIST over 100 clients and trains a softmax regression
with noise in shares (epsilon 8, delta 1e-5, one client is one person); beside it the same training with central noise
of the same size, and without noise. With ``masked`` after FOLDER, the sum goes through the whole protocol, which
changes no number and takes most of the time; else shares are added up as they are.

``python benchmarks/federated_training.py rounds 1000 5000`` measures time and memory of one round with so many clients.

Both need ``flwr`` (extra ``federated``).
"""

import gzip
import logging
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message, RecordDict
from flwr.clientapp import ClientApp

import defocus as dp
from defocus.federated import Identity
from defocus.federated.flower import Loopback, PrivateClient, PrivateTraining
from defocus.federated.training_plan import TrainingPlan
from defocus.privacy import account
from defocus.privacy.calibration import calibrate

CLIENTS, ROUNDS, CLIP, STEPS, SPEED = 100, 10, 1.0, 4, 0.5


def images(folder: str, name: str) -> Any:
    with gzip.open(next(Path(folder).glob(f"{name}-images*")), "rb") as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784) / 255.0


def labels(folder: str, name: str) -> Any:
    with gzip.open(next(Path(folder).glob(f"{name}-labels*")), "rb") as file:
        return np.frombuffer(file.read(), np.uint8, offset=8)


def local_steps(weights: Any, x: Any, y: Any) -> Any:
    """What a client does with its own rows: steps of softmax regression."""
    made = weights.copy()
    for _ in range(STEPS):
        scores = x @ made
        chance = np.exp(scores - scores.max(1, keepdims=True))
        chance /= chance.sum(1, keepdims=True)
        chance[np.arange(len(y)), y] -= 1
        made -= SPEED * x.T @ chance / len(y)
    return made


def mnist(folder: str, *, masked: bool) -> None:
    x, y = images(folder, "train"), labels(folder, "train")
    test_x, test_y = images(folder, "t10k"), labels(folder, "t10k")
    order = np.random.default_rng(1).permutation(len(y))
    parts = np.array_split(order, CLIENTS)

    def plan_of(noise: float) -> TrainingPlan:
        return TrainingPlan(clients=CLIENTS, rounds=ROUNDS, clip=CLIP, noise_multiplier=noise)

    noise = calibrate(lambda z: plan_of(z).event(7840), epsilon=8, delta=1e-5, low=0.1, high=100)
    plan, who = plan_of(noise), [Identity.generate() for _ in range(CLIENTS)]
    print(f"noise multiplier {noise:.3f}, epsilon {account(plan.event(7840)).epsilon(1e-5):.3f}")
    app = ClientApp()

    @app.train(mods=[PrivateClient(plan, lambda context: who[context.node_id - 1], {each.public for each in who})])
    def train(message: Any, context: Any) -> Any:
        own = parts[context.node_id - 1]
        moved = local_steps(message.content["arrays"].to_numpy_ndarrays()[0], x[own], y[own])
        return Message(RecordDict({"arrays": ArrayRecord([moved])}), reply_to=message)

    def right(weights: Any) -> float:
        return 100 * float(np.mean((test_x @ weights).argmax(1) == test_y))

    began = time.perf_counter()
    if masked:
        with tempfile.TemporaryDirectory() as home:
            terms = {"unit": dp.user("client"), "budget": dp.Budget(8.01, 1e-5), "dataset": "clients"}
            with dp.Ledger.open(f"{home}/l", **terms) as ledger:
                start = ArrayRecord([np.zeros((784, 10))])
                made = PrivateTraining(plan, ledger).start(Loopback(app, CLIENTS), start, num_rounds=ROUNDS)
        weights = made.arrays.to_numpy_ndarrays()[0]
    else:
        weights, share = np.zeros((784, 10)), plan.noise(7840)
        for _ in range(ROUNDS):
            moves = (local_steps(weights, x[own], y[own]) - weights for own in parts)
            total = sum(share.sample(plan.encoded([move])) for move in moves)
            weights = weights + plan.decoded(total, CLIENTS).reshape(784, 10)
    print(f"{'noise in shares':26}  {right(weights):.2f} %", end="")
    print(f"  ({time.perf_counter() - began:.0f} s)")
    for said, size in (("central noise", noise), ("no noise", 0.0)):
        found = []
        for seed in range(2):
            random, weights = np.random.default_rng(seed), np.zeros((784, 10))
            for _ in range(ROUNDS):
                moves = [local_steps(weights, x[own], y[own]) - weights for own in parts]
                clipped = sum(move * min(1, CLIP / np.linalg.norm(move)) for move in moves)
                weights = weights + (clipped + random.normal(0, size * CLIP or 1e-300, weights.shape)) / CLIENTS
            found.append(right(weights))
            if not size:
                break
        print(f"{said:26}  {np.mean(found):.2f} %")


def rounds(numbers: list[int]) -> None:
    for trusted, length in ((True, 10_000), (False, 10_000)):
        for number in numbers if trusted else (50, 100):
            plan = TrainingPlan(clients=number, rounds=1, clip=1.0, noise_multiplier=1.0, trusted=trusted)
            app, who = ClientApp(), dict[int, Identity]()

            def identity(context: Any, who: dict[int, Identity] = who) -> Identity:
                return who.setdefault(context.node_id, Identity.generate())

            @app.train(mods=[PrivateClient(plan, identity, None)])
            def train(message: Any, context: Any) -> Any:
                moved = [each + context.node_id for each in message.content["arrays"].to_numpy_ndarrays()]
                return Message(RecordDict({"arrays": ArrayRecord(moved)}), reply_to=message)

            began, spent = time.perf_counter(), time.process_time()
            with tempfile.TemporaryDirectory() as home:
                terms = {"unit": dp.user("client"), "budget": dp.Budget(1e6, 1e-5), "dataset": "clients"}
                with dp.Ledger.open(f"{home}/l", **terms) as ledger:
                    start = ArrayRecord([np.zeros(length)])
                    PrivateTraining(plan, ledger).start(Loopback(app, number), start, num_rounds=1)
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            how = "trusted server" if trusted else "secure sum"
            print(f"{how:14}  {number:5} clients  {time.perf_counter() - began:6.1f} s", end="")
            print(f"  {time.process_time() - spent:6.1f} s of processor  {most:5.0f} MiB at most so far")


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    if sys.argv[1] == "mnist":
        mnist(sys.argv[2], masked=sys.argv[3:] == ["masked"])
    else:
        rounds([int(each) for each in sys.argv[2:]])
