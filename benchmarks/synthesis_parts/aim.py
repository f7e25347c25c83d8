"""AIM as its paper has it, on mbi 2.0.0; marginals outside the model's cliques are exact sums by numpy.

mbi compiles one program for each of them in each round, which takes most of the time of the published script (50 s
for the 55 pairs of a table of ten columns, .04 s here), and finds the same numbers to a millionth.

Reference: McKenna, Mullins, Sheldon, Miklau (2022), AIM: an adaptive and iterative mechanism for differentially private
synthetic data; rounds, shares and annealing as in the authors' script.
"""

import itertools
import math
import time
from collections.abc import Sequence
from typing import Any

import jax
import mbi
import numpy as np
import opt_einsum
from mbi import junction_tree
from mbi.estimation import MirrorDescent

Columns = tuple[str, ...]
ITERATIONS = 1000


def rho_of(epsilon: float, delta: float) -> float:
    """The zero-concentrated budget that is worth so much (Canonne, Kamath, Steinke 2020, proposition 12)."""

    def worth(rho: float) -> float:
        orders = 1 + np.geomspace(1e-3, 1e3, 20_000)
        logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
        return math.exp(min(float(logs.min()), 0))

    low, high = 0.0, epsilon + 1
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if worth(middle) <= delta else (low, middle)
    return low


def closure(sets: Sequence[Columns]) -> list[Columns]:
    parts = {part for own in sets for ways in range(1, len(own) + 1) for part in itertools.combinations(own, ways)}
    return sorted(parts, key=lambda own: (len(own), own))


def marginals(model: Any, queries: Sequence[Columns]) -> dict[Columns, Any]:
    domain, found = model.domain, {}

    def shaped(factor: Any, columns: Columns) -> Any:
        return np.asarray(factor.datavector(), np.float64).reshape([domain.size((name,)) for name in columns])

    beliefs = [(tuple(own), shaped(model.marginals[own], own)) for own in model.marginals.cliques]
    places = {name: i for i, name in enumerate(domain)}
    parts: list[Any] = []
    for own in model.potentials.cliques:
        logs = shaped(model.potentials[own], own)
        parts += [np.exp(logs - logs.max()), [places[name] for name in own]]
    for query in queries:
        inside = next(((own, belief) for own, belief in beliefs if set(query) <= set(own)), None)
        if inside is not None:
            own, belief = inside
            kept = [name for name in own if name in query]
            summed = belief.sum(axis=tuple(i for i, name in enumerate(own) if name not in query))
            found[query] = np.transpose(summed, [kept.index(name) for name in query]).ravel()
            continue
        summed = opt_einsum.contract(*parts, [places[name] for name in query], optimize="greedy").ravel()
        told = summed.sum() > 1e-250  # else it is too small for a number, and mbi does it in logarithms
        found[query] = (
            summed * (float(model.total) / summed.sum()) if told else np.asarray(model.project(query).datavector())
        )
    return found


def aim(data: Any, epsilon: float, delta: float, megabytes: float, random: np.random.Generator) -> tuple[Any, float]:
    """A model of the data, and the seconds by the clock it took; every round is printed."""
    begun, domain = time.time(), data.domain
    workload = [pair for pair in itertools.combinations(domain, 2) if domain.size(pair) <= 10_000]
    weights = {own: float(sum(len(set(own) & set(pair)) for pair in workload)) for own in closure(workload)}
    answers = {own: np.asarray(data.project(own).datavector()) for own in weights}
    rho, used, rounds, measured = rho_of(epsilon, delta), 0.0, 0, []
    planned = 16 * len(domain)
    sigma, selecting = math.sqrt(planned / (1.8 * rho)), math.sqrt(0.8 * rho / planned)

    def measure(own: Columns) -> None:
        noisy = answers[own] + random.normal(0, sigma, answers[own].size)
        measured.append(mbi.LinearMeasurement(noisy, own, stddev=sigma))

    def fit(model: Any) -> Any:
        warm = {} if model is None else {"warm_start": model}
        return MirrorDescent().estimate(domain, measured, iters=ITERATIONS, callback_fn=lambda *_: None, **warm)

    for own in (own for own in weights if len(own) == 1):
        measure(own)
        used += 0.5 / sigma**2
    model, last = fit(None), False
    while not last:
        rounds += 1
        if rho - used < 2 * (0.5 / sigma**2 + selecting**2 / 8):
            last, sigma, selecting = True, math.sqrt(1 / (1.8 * (rho - used))), math.sqrt(0.8 * (rho - used))
        used += selecting**2 / 8 + 0.5 / sigma**2
        free, limit = set(closure(model.cliques)), megabytes * used / rho
        allowed = [
            own
            for own in weights
            if own in free or junction_tree.hypothetical_model_size(domain, [*model.cliques, own]) <= limit
        ]
        now = marginals(model, allowed)
        chance = math.sqrt(2 / math.pi) * sigma
        errors = [weights[own] * (np.abs(answers[own] - now[own]).sum() - chance * domain.size(own)) for own in allowed]
        scores = selecting / (2 * max(weights[own] for own in allowed)) * np.array(errors)
        shares = np.exp(scores - scores.max())
        chosen = allowed[random.choice(len(allowed), p=shares / shares.sum())]
        measure(chosen)
        model = fit(model)
        moved = np.abs(marginals(model, [chosen])[chosen] - now[chosen]).sum()
        print(rounds, "spent", round(used / rho, 3), chosen, round(time.time() - begun), "s", flush=True)
        if moved <= chance * domain.size(chosen):
            sigma, selecting = sigma / 2, 2 * selecting
        if rounds % 8 == 0:
            jax.clear_caches()  # or JAX ends for want of memory
    return model, time.time() - begun
