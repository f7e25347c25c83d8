"""The main query in PipelineDP on its local backend: count, sum and mean from one pair of noisy numbers.

Its rows are Python objects; making them from the file belongs to the release.
"""

from operator import itemgetter

import pipeline_dp as pdp
import pyarrow.parquet as pq
from protocol import EPSILON, GROUPS, HIGH, LOW, ROWS, measure


def release(path: str) -> list[float]:
    table = pq.read_table(path)
    rows = list(zip(*(table[name].to_pylist() for name in ("user", "grp", "v")), strict=True))
    del table
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=0)
    wanted = pdp.AggregateParams(
        metrics=[pdp.Metrics.COUNT, pdp.Metrics.SUM, pdp.Metrics.MEAN],
        noise_kind=pdp.NoiseKind.LAPLACE,
        max_contributions=ROWS,
        min_value=LOW,
        max_value=HIGH,
    )
    columns = pdp.DataExtractors(
        privacy_id_extractor=itemgetter(0), partition_extractor=itemgetter(1), value_extractor=itemgetter(2)
    )
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    answers = engine.aggregate(rows, wanted, columns, public_partitions=list(range(GROUPS)))
    accountant.compute_budgets()
    found = {key: each.mean for key, each in answers}
    return [found[key] for key in range(GROUPS)]


if __name__ == "__main__":
    measure("pipeline-dp", lambda path: path, release)
