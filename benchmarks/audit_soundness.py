"""How often bounds of audits exceed the truth, by mechanisms of exactly known epsilon.

    python benchmarks/audit_soundness.py [--runs 1000] [--only NAME ...]

Each bound is asked for many times, at 90 % and 99 % confidence, of a release whose epsilon is known exactly. A bound
that is sound is above it in no more than 10 % and 1 % of the runs. What is printed: how often it was, an upper limit of
the true share (Clopper–Pearson, 99.9 %), and the median bound beside the truth: a test that never says anything is
sound, too.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from defocus import audit
from defocus.audit.bounds import upto
from defocus.noise.testing import seeded
from defocus.privacy import Approximate, Event, Gaussian, Laplace, RandomizedResponse, Sampled, account

Floats = np.ndarray
One = Callable[[np.random.Generator, float], float]
M, DELTA = 200, 1e-5
EPSILON = 1.0
TRUTH = math.exp(EPSILON) / (1 + math.exp(EPSILON))


def responses(draw: np.random.Generator, coins: Floats) -> Floats:
    """Randomised response about each coin: epsilon is EPSILON exactly."""
    return np.where(draw.random(len(coins)) < TRUTH, coins, 1 - coins)


def response(draw: np.random.Generator, confidence: float) -> float:
    coins = draw.integers(0, 2, M)
    return audit.one_run(responses(draw, coins), coins, confidence=confidence).epsilon_lower


def response_and_leaks(draw: np.random.Generator, confidence: float) -> float:
    """Randomised response, and with probability delta a coin is shown, of each canary apart."""
    coins, delta = draw.integers(0, 2, M), 0.01
    shown = np.where(draw.random(M) < delta, 10 * (2 * coins - 1), responses(draw, coins))
    return audit.one_run(shown, coins, delta=delta, confidence=confidence).epsilon_lower


def all_or_nothing(draw: np.random.Generator, confidence: float) -> float:
    """All coins with probability delta, else nothing: (0, delta)-DP, at the level of the test itself."""
    coins, delta = draw.integers(0, 2, M), (1 - confidence) / 2
    scores = coins if draw.random() < delta else np.zeros(M)
    return audit.one_run(scores, coins, delta=delta, confidence=confidence).epsilon_lower


def ties(draw: np.random.Generator, confidence: float) -> float:
    """Nothing is told and all scores are equal: guesses follow the order of the canaries."""
    coins = draw.integers(0, 2, M)
    return audit.one_run(np.zeros(M), coins, confidence=confidence).epsilon_lower


def by_event(
    event: Event, score: Callable[[np.random.Generator, Floats], Floats], *, alone: bool, groups: int, changes: int = 1
) -> One:
    labels = np.arange(M) % groups if groups else None

    def one(draw: np.random.Generator, confidence: float) -> float:
        coins = draw.integers(0, 2, M)
        found = audit.one_run(
            score(draw, coins), coins, event=event, delta=DELTA, confidence=confidence, independent=alone,
            groups=labels, changes=changes,
        )  # fmt: skip
        return found.epsilon_lower

    return one


def leaks(*, together: bool) -> One:
    """Randomised response under a curve with delta: beside it, coins are shown, all at once or each by its own chance.

    Shown together they are what the curve alone allows, at the level of the test itself.
    """

    def one(draw: np.random.Generator, confidence: float) -> float:
        delta = (1 - confidence) / 2 if together else 0.01
        coins = draw.integers(0, 2, M)
        shown = draw.random(1 if together else M) < delta
        scores = np.where(shown, 10 * (2 * coins - 1), responses(draw, coins))
        event = Approximate(EPSILON, delta)
        return audit.one_run(
            scores, coins, event=event, delta=delta, confidence=confidence, independent=not together
        ).epsilon_lower  # fmt: skip

    return one


def gaussian(draw: np.random.Generator, coins: Floats) -> Floats:
    return coins + draw.normal(size=M)


def laplace(draw: np.random.Generator, coins: Floats) -> Floats:
    return coins + draw.laplace(size=M)


STEPS, RATE = 10, Fraction(1, 4)
SAMPLED = STEPS * Sampled(Gaussian(1.0), RATE)


def sampled(draw: np.random.Generator, coins: Floats) -> Floats:
    """Steps of a sampled Gaussian, and the likelihood of each canary."""
    x = coins * (draw.random((STEPS, M)) < RATE) + draw.normal(size=(STEPS, M))
    return np.log1p(float(RATE) * np.expm1(x - 0.5)).sum(axis=0)


def opposed(draw: np.random.Generator, coins: Floats) -> Floats:
    """The same between two persons, whose vectors are opposite."""
    x = (2 * coins - 1) * (draw.random((STEPS, M)) < RATE) + draw.normal(size=(STEPS, M))
    odds = [np.log1p(float(RATE) * np.expm1(sign * x - 0.5)).sum(axis=0) for sign in (1, -1)]
    return np.asarray(odds[0] - odds[1])


def twice(draw: np.random.Generator, coins: Floats) -> Floats:
    return 2 * coins - 1 + draw.normal(size=M)


@audit.batched
def _answered(bit: int, n: int) -> Floats:
    draw = np.random.default_rng()
    return np.where(draw.random(n) < TRUTH, bit, 1 - bit)


@audit.batched
def _noisy(value: float, n: int) -> Floats:
    draw = np.random.default_rng()
    return np.floor(draw.laplace(0, 1 / EPSILON, n) + value)  # a lattice that the value does not move


def repeated(_: np.random.Generator, confidence: float) -> float:
    return audit.lower_bound(_answered, (0, 1), 2000, confidence).epsilon_lower


def early(_: np.random.Generator, confidence: float) -> float:
    """Stopping is allowed at every doubling."""
    return audit.lower_bound(_answered, (0, 1), 8000, confidence, claimed=EPSILON, seconds=5).epsilon_lower


def searched(_: np.random.Generator, confidence: float) -> float:
    pairs = [audit.Pair(f"{i}", float(i), float(i + 1)) for i in range(6)]
    return audit.search(_noisy, pairs, 2000, confidence).epsilon_lower


def members(draw: np.random.Generator, confidence: float) -> float:
    """Each person's row is there for all to see, told truly with the probability that epsilon allows."""
    people = np.arange(M)

    def fit(rows: Floats) -> Floats:
        return responses(draw, np.isin(people, rows))

    seed = seeded(int(draw.integers(2**40)))
    found = audit.membership(fit, people, score=lambda model, _: model, shadows=4, confidence=confidence, bits=seed)
    return found.bound.epsilon_lower


def secrets(draw: np.random.Generator, confidence: float) -> float:
    seed = seeded(int(draw.integers(2**40)))
    answered = audit.reconstruction(
        lambda own: responses(draw, own), np.eye(M), method="least squares", confidence=confidence, bits=seed
    )
    return answered.bound.epsilon_lower


def at(event: Event) -> float:
    return account(event).epsilon(DELTA)


CASES: dict[str, tuple[float, One]] = {
    "one run: randomised response": (EPSILON, response),
    "one run: and each coin shown with probability delta": (EPSILON, response_and_leaks),
    "one run: all coins with probability delta": (0.0, all_or_nothing),
    "one run: nothing told, all scores equal": (0.0, ties),
    "curve: Gaussian": (at(Gaussian(1.0)), by_event(Gaussian(1.0), gaussian, alone=False, groups=0)),
    "curve: Laplace": (at(Laplace(1.0)), by_event(Laplace(1.0), laplace, alone=False, groups=0)),
    "curve: 10 steps of a sampled Gaussian": (at(SAMPLED), by_event(SAMPLED, sampled, alone=False, groups=0)),
    "curve: randomised response, and all coins with probability delta": (EPSILON, leaks(together=True)),
    "independent: randomised response, and each coin with probability delta": (EPSILON, leaks(together=False)),
    "independent: Gaussian": (at(Gaussian(1.0)), by_event(Gaussian(1.0), gaussian, alone=True, groups=0)),
    "independent: Gaussian, four groups": (at(Gaussian(1.0)), by_event(Gaussian(1.0), gaussian, alone=True, groups=4)),
    "independent: Laplace": (at(Laplace(1.0)), by_event(Laplace(1.0), laplace, alone=True, groups=0)),
    "independent: randomised response": (
        at(RandomizedResponse(EPSILON)),
        by_event(RandomizedResponse(EPSILON), responses, alone=True, groups=0),
    ),
    "independent: 10 steps of a sampled Gaussian": (at(SAMPLED), by_event(SAMPLED, sampled, alone=True, groups=0)),
    "two changes: Gaussian": (at(Gaussian(1.0)), by_event(Gaussian(1.0), twice, alone=True, groups=0, changes=2)),
    "two changes: 10 steps of a sampled Gaussian": (
        at(SAMPLED),
        by_event(SAMPLED, opposed, alone=True, groups=0, changes=2),
    ),
    "many runs: randomised response": (EPSILON, repeated),
    "many runs: stopped early": (EPSILON, early),
    "many runs: search over six pairs": (EPSILON, searched),
    "membership: five attacks": (EPSILON, members),
    "reconstruction": (EPSILON, secrets),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--confidence", type=float, default=0.9, help="the lower one of two; the other is 99 %%")
    asked = parser.parse_args()
    low = f"{100 * asked.confidence:g} %"
    print(f"{asked.runs} runs, {M} canaries\n")
    print(f"| bound | true ε | median bound at {low} | above the truth at {low} | at 99 % | at most, 99.9 % sure | s |")
    print("|---|---|---|---|---|---|---|")
    for name, (truth, one) in CASES.items():
        if asked.only and not any(name.startswith(own) for own in asked.only):
            continue
        began, told = time.monotonic(), []
        for confidence in (asked.confidence, 0.99):
            draw = np.random.default_rng(1)
            found = [one(draw, confidence) for _ in range(asked.runs)]
            above = sum(bound > truth for bound in found)
            told.append((above, statistics.median(found), float(upto(above, asked.runs, 0.001))))
        (ten, middle, most), (hundredth, _, least) = told
        print(
            f"| {name} | {truth:.3f} | {middle:.3f} | {ten / asked.runs:.2%} | {hundredth / asked.runs:.2%}"
            f" | {most:.1%}, {least:.1%} | {time.monotonic() - began:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
