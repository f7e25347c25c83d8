"""Federated training on MNIST, and rounds of thousands of clients in one process.

``python benchmarks/federated_training.py mnist FOLDER`` splits MNIST over 100 clients of 600 images, each of which is
one person, and trains a softmax regression on images of 14 x 14 for epsilon 8 and delta 1e-5. *shares*: our strategy
and client mod, the whole protocol for the first seed and the same integers without masks for the others. *central*: the
same steps with one trusted curator who adds Gaussian noise of the same multiplier. *Flower*: its own
``DifferentialPrivacyServerSideFixedClipping`` at the same multiplier, charged to a ledger. Means over seeds of noise.
Clip and steps were chosen on the central run.

``python benchmarks/federated_training.py clips FOLDER`` begins with clips that are too short and too long, and keeps
them or lets them follow the median. A tenth of the images, 30 rounds, a trusted server, the same noise.

``python benchmarks/federated_training.py rounds 1000 5000`` measures time and memory of one round with so many clients.

Both need ``flwr`` (extra ``federated``).
"""

import gzip
import json
import logging
import resource
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import NeighboringRelation, PrivacyConfig, SamplingMethod
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

import defocus as dp
from defocus.federated import Identity
from defocus.federated.flower import LedgerAccountant, Loopback, PrivateClient, PrivateTraining
from defocus.federated.training_plan import TrainingPlan
from defocus.privacy import account
from defocus.privacy.calibration import calibrate

HERE = Path(__file__).parent
CLIENTS, ROUNDS, CLIP, STEPS, SPEED, SEEDS = 100, 10, 2.0, 8, 2.0, 5
SHAPE = (196, 10)
TERMS: dict[str, Any] = {"unit": dp.user("client"), "budget": dp.Budget(8.01, 1e-5), "dataset": "clients"}


def images(folder: str, name: str) -> Any:
    """Of 14 x 14 pixels, each the mean of four."""
    with gzip.open(next(Path(folder).glob(f"{name}-images*")), "rb") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 14, 2, 14, 2)
    return pixels.mean(axis=(2, 4)).reshape(-1, 196) / 255.0


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


def mnist(folder: str) -> None:  # noqa: C901  # one experiment, from top to bottom
    x, y = images(folder, "train"), labels(folder, "train")
    test_x, test_y = images(folder, "t10k"), labels(folder, "t10k")
    parts = np.array_split(np.random.default_rng(1).permutation(len(y)), CLIENTS)

    def plan_of(noise: float) -> TrainingPlan:
        return TrainingPlan(clients=CLIENTS, rounds=ROUNDS, clip=CLIP, noise_multiplier=noise)

    noise = calibrate(lambda z: plan_of(z).event(1960), epsilon=8, delta=1e-5, low=0.1, high=100)
    plan, who = plan_of(noise), [Identity.generate() for _ in range(CLIENTS)]
    private, plain = (
        ClientApp(mods=[PrivateClient(plan, lambda at: who[at.node_id - 1], {w.public for w in who})]),
        ClientApp(),
    )

    def train(message: Any, context: Any) -> Any:
        own = parts[context.node_id - 1]
        moved = local_steps(message.content["arrays"].to_numpy_ndarrays()[0], x[own], y[own])
        told = {"arrays": ArrayRecord([moved]), "metrics": MetricRecord({"num-examples": len(own)})}
        return Message(RecordDict(told), reply_to=message)

    private.train()(train)
    plain.train()(train)

    def right(weights: Any) -> float:
        return 100 * float(np.mean((test_x @ weights).argmax(1) == test_y))

    def moves(weights: Any) -> Any:
        return (local_steps(weights, x[own], y[own]) - weights for own in parts)

    def protocol() -> Any:
        with tempfile.TemporaryDirectory() as home, dp.Ledger.open(f"{home}/l", **TERMS) as ledger:
            grid, start = Loopback(private, CLIENTS), ArrayRecord([np.zeros(SHAPE)])
            return PrivateTraining(plan, ledger).start(grid, start, num_rounds=ROUNDS).arrays.to_numpy_ndarrays()[0]

    def shares() -> Any:
        weights, share = np.zeros(SHAPE), plan.noise(1960)
        for _ in range(ROUNDS):
            total = sum(share.sample(plan.encoded([move])) for move in moves(weights))
            weights = weights + plan.decoded(total, CLIENTS)[0].reshape(SHAPE)
        return weights

    def central(size: float) -> Any:
        random, weights = np.random.default_rng(), np.zeros(SHAPE)
        for _ in range(ROUNDS):
            clipped = sum(move * min(1, CLIP / np.linalg.norm(move)) for move in moves(weights))
            weights = weights + (clipped + size * CLIP * random.normal(size=SHAPE)) / CLIENTS
        return weights

    def flower() -> Any:
        config = PrivacyConfig(
            target_delta=1e-5,
            population_size=CLIENTS,
            neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
            sampling_method=SamplingMethod.NO_AMPLIFICATION,
            max_epsilon=8.0,
        )
        roomy = {**TERMS, "budget": dp.Budget(20, 1e-5)}  # charged round by round, which is counted less tightly
        with tempfile.TemporaryDirectory() as home, dp.Ledger.open(f"{home}/l", **roomy) as ledger:
            inner = FedAvg(fraction_evaluate=0.0, min_available_nodes=CLIENTS, min_train_nodes=CLIENTS)
            book = LedgerAccountant(ledger, config)
            strategy = DifferentialPrivacyServerSideFixedClipping(inner, noise, CLIP, CLIENTS, accountant=book)
            grid, start = Loopback(plain, CLIENTS), ArrayRecord([np.zeros(SHAPE)])
            return strategy.start(grid, start, num_rounds=ROUNDS).arrays.to_numpy_ndarrays()[0]

    ways = {
        "shares": [protocol] + [shares] * (SEEDS - 1),
        "central": [lambda: central(noise)] * SEEDS,
        "flower": [flower] * SEEDS,
        "no noise": [lambda: central(0.0)],
    }
    found: dict[str, Any] = {"noise_multiplier": noise, "epsilon": account(plan.event(1960)).epsilon(1e-5)}
    print(found)
    for name, runs in ways.items():
        scores, times = [], []
        for run in runs:
            began = time.process_time()
            scores.append(right(run()))
            times.append(round(time.process_time() - began, 1))
        found[name] = {"accuracy": scores, "seconds": times}
        spread = np.std(scores, ddof=1) if len(scores) > 1 else 0.0
        print(f"{name:10}  {np.mean(scores):.2f} ± {spread:.2f} %  {times} s of processor time", flush=True)
    about = {"flwr": version("flwr"), "numpy": version("numpy")}
    (HERE / "results" / "federated_training.json").write_text(json.dumps({"about": about, **found}, indent=1) + "\n")


def clips(folder: str) -> None:
    x, y = images(folder, "train"), labels(folder, "train")
    test_x, test_y = images(folder, "t10k"), labels(folder, "t10k")
    parts = np.array_split(np.random.default_rng(1).permutation(len(y))[: len(y) // 10], CLIENTS)
    for first in (0.02, 0.2, 2.0, 20.0, 200.0):
        for quantile in (None, 0.5):
            plan = TrainingPlan(
                clients=CLIENTS, rounds=30, clip=first, noise_multiplier=3.3, trusted=True, quantile=quantile
            )
            weights, clip, noise = np.zeros(SHAPE), first, plan.noise(plan.length(1960))
            for _ in range(plan.rounds):
                moves = (local_steps(weights, x[own], y[own]) - weights for own in parts)
                total = noise.sample(np.sum([plan.encoded([move], clip) for move in moves], axis=0))
                mean, clip = plan.decoded(total, CLIENTS, clip)
                weights = weights + mean.reshape(SHAPE)
            right = 100 * float(np.mean((test_x @ weights).argmax(1) == test_y))
            how = "kept" if quantile is None else "follows"
            print(f"clip {first:6} {how:8} {right:.1f} %  at last {clip:.2f}", flush=True)
    print("epsilon", round(float(account(plan.event(1961)).epsilon(1e-5)), 2))


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
    if sys.argv[1] in {"mnist", "clips"}:
        {"mnist": mnist, "clips": clips}[sys.argv[1]](sys.argv[2])
    else:
        rounds([int(each) for each in sys.argv[2:]])
