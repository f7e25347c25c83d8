"""Draw the pictures of the documentation: ``python scripts/pictures.py``.

The data is made up and the noise is repeatable, so that the same code draws the same numbers.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import defocus as dp
from defocus.noise.testing import seeded

__all__ = ["FOLDER", "drawn"]

FOLDER = Path(__file__).parents[1] / "docs" / "images"
WARDS, SEXES = ["cardiology", "neurology", "surgery"], ["female", "male"]


def _visits() -> pa.Table:
    rng, n = np.random.default_rng(1), 40_000
    day = np.datetime64("2024-01-01") + np.floor(730 * rng.random(n) ** 0.8).astype(int)
    return pa.table(
        {
            "patient_id": np.floor(16_000 * rng.random(n) ** 1.3).astype(int),
            "department": rng.choice(WARDS, n, p=[0.5, 0.3, 0.2]),
            "sex": rng.choice(SEXES, n),
            "month": np.datetime_as_string(day, unit="M"),
            "age": np.clip(rng.normal(55, 20, n), 0, 99).astype(int),
            "length_of_stay": rng.gamma(2, 3, n).round(1),
        }
    )


def drawn() -> Mapping[str, Any]:
    """The pictures, by the names of their files."""
    months = [f"{year}-{month:02d}" for year in (2024, 2025) for month in range(1, 13)]
    with (
        tempfile.TemporaryDirectory() as home,
        dp.open(
            _visits(), unit=dp.user("patient_id"), budget=dp.Budget(9), ledger=f"{home}/visits.ledger", name="visits"
        ) as opened,
    ):
        visits = opened.bound(rows=5)
        stay = dp.mean("length_of_stay", 0, 30)
        questions = {
            "answer": visits.group_by("department", keys=WARDS).agg(visits=dp.count(), stay=stay),
            "months": visits.group_by("month", "department", keys={"month": months, "department": WARDS}).agg(
                visits=dp.count()
            ),
            "side_by_side": visits.group_by("department", "sex", keys={"department": WARDS, "sex": SEXES}).agg(
                visits=dp.count(), stay=stay
            ),
            "histogram": visits.group_by("department", keys=WARDS).agg(age=dp.histogram("age", range(0, 101, 10))),
        }
        return {
            f"{name}.svg": question.release(epsilon=0.15, bits=seeded(place)).plot()
            for place, (name, question) in enumerate(questions.items())
        }


if __name__ == "__main__":
    for name, picture in drawn().items():
        picture.savefig(FOLDER / name)
        print(f"docs/images/{name}")
