"""The tables of the synthesis benchmark, as codes on public bins.

``python -m benchmarks.synthesis_parts.tables DATA FOLDER`` writes ``ward``, ``wide``, ``adult``, ``adult_codes``,
``national`` and ``texas`` as ``.npz`` files. DATA has ``adult/adult-discretised.csv`` (with its ``adult-domain.json``)
and the NIST Diverse Community Excerpts ``acs/national2019.csv`` and ``acs/tx2019.csv``; the ward table and the wide one
are generated.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

TEST = 5
"""One row of so many is kept for testing models."""


def ward(rows: int = 50_000) -> dict[str, Any]:
    """A hospital's table: ten columns of all kinds, with dependencies of several orders."""
    random = np.random.default_rng(20240607)

    def chance(z: Any) -> Any:
        return 1 / (1 + np.exp(-z))

    region = random.choice(8, rows, p=[0.25, 0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.04])
    sex = random.integers(0, 2, rows)
    age = np.clip(np.round(random.beta(2.2, 1.6, rows) * 100 - 2 * (region == 7)), 0, 99).astype(int)
    payers = np.stack(
        [
            0.02 * (40 - age) + 0.3 * (region < 3),
            0.06 * (age - 62),
            0.02 * (30 - age) - 0.5 + 0.3 * (region > 4),
            -1.5 + 0 * age,
        ],
        1,
    )
    payer = (payers + random.gumbel(size=payers.shape)).argmax(1)
    smoker = (
        random.random(rows) < chance(-1.3 + 0.35 * sex + 0.3 * (payer == 2) - 0.02 * (age - 50) * (age > 50))
    ).astype(int)
    bmi = np.clip(26 + 3 * (age / 60) + random.gamma(2.5, 2.0, rows) - 5 - 1.2 * smoker + 0.6 * (region % 3), 14, 60)
    pressure = np.clip(98 + 0.45 * age + 0.75 * (bmi - 25) + 4 * smoker + random.normal(0, 13, rows), 70, 230)
    pull = random.normal(0, 0.9, (12, 5))
    facts = np.stack([age / 50 - 1, (bmi - 28) / 5, (pressure - 130) / 20, smoker, sex], 1)
    diagnosis = (facts @ pull.T + np.log(np.linspace(3, 0.4, 12)) + random.gumbel(size=(rows, 12))).argmax(1)
    stay = np.clip(
        np.floor(random.gamma(1.2, 2 + 0.03 * age + 1.3 * (diagnosis % 4) + 1.0 * (payer == 1), rows)), 0, 60
    )
    again = chance(
        -2.6
        + 0.018 * (age - 50)
        + 0.06 * np.minimum(stay, 20)
        + 0.9 * np.isin(diagnosis, [1, 4, 7])
        + 0.5 * smoker
        - 0.35 * (payer == 0)
        + 0.015 * (pressure - 130)
    )
    readmitted = (random.random(rows) < again).astype(int)
    unknown = random.random(rows) < np.where(age > 75, 0.18, 0.05)
    bmi_edges = np.r_[14, np.arange(18, 46, 2.0), 50, 60.01]
    columns = [
        (binned(age, np.arange(0, 105, 5.0)), 20, True, False),
        (sex, 2, False, False),
        (region, 8, False, False),
        (payer, 4, False, False),
        (smoker, 2, False, False),
        (np.where(unknown, len(bmi_edges) - 1, binned(bmi.round(1), bmi_edges)), len(bmi_edges), True, True),
        (binned(pressure.round(0), np.r_[70, np.arange(90, 190, 6.0), 200, 230.01]), 18, True, False),
        (diagnosis, 12, False, False),
        (binned(stay, np.r_[0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 45, 61.0]), 16, True, False),
        (readmitted, 2, False, False),
    ]
    table = coded(columns)
    return table | {"codes": table["codes"][:40_000], "test": table["codes"][40_000:]}


def wide(rows: int = 40_000, columns: int = 40) -> dict[str, Any]:
    """Forty columns of 2 to 20 codes that depend on six hidden numbers, a few of which each column knows."""
    random = np.random.default_rng(20240608)
    hidden = random.normal(size=(rows, 6))
    made = []
    for place in range(columns):
        size = (2, 3, 5, 8, 12, 20)[place % 6]
        known = random.normal(size=6) * (random.random(6) < 0.5)
        level = hidden @ known + random.normal(size=rows)
        cuts = np.quantile(level, np.sort(random.random(size - 1)))
        made.append((np.searchsorted(cuts, level), size, size > 5, False))
    return coded(made)


def adult(home: Path, *, fine: bool) -> dict[str, Any]:
    """Adult: all codes, or numbers on a public grid of about 20 cells."""
    sizes: dict[str, int] = json.loads((home / "adult-domain.json").read_text("utf-8"))
    rows = np.loadtxt(home / "adult-discretised.csv", delimiter=",", skiprows=1, dtype=np.int64)
    cells = {"age": 5, "fnlwgt": 5, "capital-gain": 5, "capital-loss": 5, "hours-per-week": 5}
    ordered = {*cells, "education-num"}
    columns = []
    for place, (name, size) in enumerate(sizes.items()):
        width = 1 if fine else cells.get(name, 1)
        columns.append((rows[:, place] // width, -(-size // width), name in ordered, False))
    table = coded(columns)
    held = np.random.default_rng(0).random(len(rows)) < 1 / TEST
    return table | {"codes": table["codes"][~held], "test": table["codes"][held]}


def excerpt(path: Path) -> dict[str, Any]:
    """The 24 columns of an excerpt of the American Community Survey on public bins; N (not applicable) is last."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    weights = [0, 1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 120, 140, 170, 200, 250, 300, 400, 600]
    incomes = [-20_000, 0, 1, *range(5_000, 60_000, 5_000), *range(60_000, 120_001, 10_000), 150_000, 200_000, 300_000]
    edges: dict[str, list[float]] = {
        "AGEP": list(range(0, 100, 5)),
        "NOC": list(range(10)),
        "NPF": list(range(2, 13)),
        "DENSITY": [0, 50, 100, 200, 400, 700, 1000, 1500, 2000, 3000, 4000, 6000, 8000, 12000, 20000, 30000],
        "INDP": list(range(0, 10_000, 250)),
        "PINCP": [*map(float, incomes)],
        "POVPIP": [*range(0, 501, 25), 501],
        "PWGTP": [*map(float, weights)],
        "WGTP": [*map(float, weights)],
        "EDU": list(range(1, 13)),
        "PINCP_DECILE": list(range(10)),
    }
    columns = []
    for name in rows[0]:
        told = [row[name] for row in rows]
        if name in edges:
            numbers = np.array([float(text) if text != "N" else np.nan for text in told])
            last = len(edges[name])
            codes = np.where(np.isnan(numbers), last, binned(numbers, np.array([*edges[name], np.inf])))
            columns.append((codes, last + 1, True, True) if "N" in told else (codes, last, True, False))
        else:
            names = {
                value: place for place, value in enumerate(sorted(set(told), key=lambda value: (value == "N", value)))
            }
            columns.append((np.array([names[text] for text in told]), len(names), False, False))
    return coded(columns)


def binned(values: Any, edges: Any) -> Any:
    """In which cell each value is; the nearest where it is in none."""
    return np.clip(np.searchsorted(edges, np.nan_to_num(values), side="right") - 1, 0, len(edges) - 2)


def coded(columns: list[tuple[Any, int, bool, bool]]) -> dict[str, Any]:
    """Codes, how many each column has, whether they have an order, and whether the last one means missing."""
    return {
        "codes": np.stack([np.asarray(codes, np.int64) for codes, *_ in columns], 1),
        "sizes": np.array([size for _, size, *_ in columns]),
        "ordered": np.array([ordered for *_, ordered, _ in columns]),
        "missing": np.array([missing for *_, missing in columns]),
    }


def main() -> None:
    data, folder = map(Path, sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    made = {
        "ward": ward(),
        "wide": wide(),
        "adult": adult(data / "adult", fine=False),
        "adult_codes": adult(data / "adult", fine=True),
        "national": excerpt(data / "acs" / "national2019.csv"),
        "texas": excerpt(data / "acs" / "tx2019.csv"),
    }
    for name, table in made.items():
        assert (table["codes"].max(0) < table["sizes"]).all()
        np.savez_compressed(folder / f"{name}.npz", **table)
        print(name, table["codes"].shape, table["sizes"].tolist())


if __name__ == "__main__":
    main()
