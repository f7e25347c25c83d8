"""Answers whose noise is known to the last factor, to compare what follows from them with what was drawn."""

import numpy as np
import pyarrow as pa

from defocus.answers import AnswerColumn, Released, Tails
from defocus.answers.columns import Floats
from defocus.answers.noise_sources import Noise
from defocus.ledger import Receipt

WIDTHS = {"normal": 1.96, "laplace": 2.1183}
SIGMA = 4.0
COUNT, SUM = np.array([[1.0, 1.0, 1.0]]) * SIGMA, np.array([[0.0, 10.0, 0.0]]) * SIGMA
"""Both of one measurement with three cells; people are measured apart."""


def exact(blocks: int, seed: int) -> dict[str, Floats]:
    """True numbers of five groups in each block."""
    chance = np.random.default_rng(seed)
    n = chance.integers(100, 400, blocks * 5).astype(float)
    return {"n": n, "s": n * chance.uniform(2, 8, len(n)), "p": np.round(n / 2)}


def answer(receipt: Receipt, true: dict[str, Floats], seed: int, law: str = "normal") -> Released:
    """The numbers with fresh noise: n and s share a measurement, p has its own, and m is the mean s / n."""
    chance = np.random.default_rng(seed)
    size = len(true["n"])

    def noise(cells: int) -> Floats:
        if law == "normal":
            return chance.normal(size=(size, cells))
        return chance.laplace(scale=np.sqrt(0.5), size=(size, cells))

    z, width = noise(3), WIDTHS[law]
    people = np.array([[SIGMA]])
    made = {"n": (COUNT, z, "sums 0"), "s": (SUM, z, "sums 0"), "p": (people, noise(1), "column p")}
    columns = []
    for name, (factors, drawn, source) in made.items():
        values = true[name] + drawn @ factors[0]
        columns.append(column(name, values, Noise({source: factors}, width, linear=True)))
    n, s = columns[0].values, columns[1].values
    slopes = SUM / n[:, None] - (s / n**2)[:, None] * COUNT
    columns.append(column("m", s / n, Noise({"sums 0": slopes}, width, linear=False)))
    keys = {"block": pa.array(np.arange(size) // 5), "place": pa.array(np.arange(size) % 5)}
    return Released(keys, tuple(columns), "numbers", receipt)


def column(name: str, values: Floats, noise: Noise | None, half: float = 1.0) -> AnswerColumn:
    errors = np.full(len(values), half / 2) if noise is None else noise.errors(len(values))
    width = np.full(len(values), half) if noise is None else noise.width * errors
    ends = values - width, values + width
    return AnswerColumn(name, values, errors, *ends, integral=False, how="noise", tails=Tails.LOG_CONCAVE, noise=noise)
