"""The main query in Defocus at default settings: nobody says how many rows of a user count, so the bound is found."""

from typing import Any

from protocol import EPSILON, GROUPS, HIGH, LOW, measure
from with_defocus import begin

import defocus as dp


def release(ready: Any) -> list[float]:
    asked = ready[0].group_by("grp", keys=list(range(GROUPS))).agg(n=dp.count(), m=dp.mean("v", LOW, HIGH))
    answer = asked.release(epsilon=EPSILON).to_arrow()
    return [mean for _, mean in sorted(zip(answer["grp"].to_pylist(), answer["m"].to_pylist(), strict=True))]


if __name__ == "__main__":
    measure("defocus", begin, release)
