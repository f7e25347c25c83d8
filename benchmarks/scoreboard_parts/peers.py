"""Releases of other libraries, run in their own environments for the auditor in another one.

``.bench/NAME/bin/python benchmarks/scoreboard_parts/peers.py CASE`` answers on its standard output: first its versions,
then, for each request on its standard input, arrays or what was raised. A message is its length and an .npz.

Each case is a function of the library alone. It returns how to make ``n`` independent outputs for a data set; each
claims epsilon 1 (what claims a delta says so in ``benchmarks/scoreboard.py``). Where a release is about many groups,
each group is a world of its own with the same rows in it, of people who are in no other: one release is ``n`` runs.
"""

import io
import os
import struct
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

warnings.simplefilter("ignore")
EPSILON, DELTA = 1.0, 1e-5
RATIO = 3.7304
"""Gaussian noise over sensitivity of which epsilon is 1 at delta 1e-5."""
BLOCK = 4096
"""So many steps are made at once, so that they are compiled once."""
Make = Callable[[Any, int], Any]


def diffprivlib(case: str) -> Make:
    from diffprivlib import tools
    from diffprivlib.mechanisms import Gaussian, Laplace

    if case == "laplace":
        laplace = Laplace(epsilon=EPSILON, sensitivity=1)
        return lambda value, n: np.array([laplace.randomise(float(value)) for _ in range(n)])
    if case == "gaussian":
        gaussian = Gaussian(epsilon=EPSILON, delta=DELTA, sensitivity=1)
        return lambda value, n: np.array([gaussian.randomise(float(value)) for _ in range(n)])
    how = {"epsilon": EPSILON, "bounds": (0.0, 1.0)}
    return lambda rows, n: np.array([float(tools.mean(rows, **how)) for _ in range(n)])


def opendp(case: str) -> Make:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    if case == "laplace, float":
        noisy = dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), 1.0)
        return lambda value, n: np.array([noisy(float(value)) for _ in range(n)])
    if case == "laplace, integer":
        noisy = dp.m.make_laplace(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), 1.0)
        return lambda value, n: np.array([noisy(int(value)) for _ in range(n)])
    rows = dp.vector_domain(dp.atom_domain(T="i64")), dp.symmetric_distance()
    total = rows >> dp.t.then_clamp((0, 10)) >> dp.t.then_sum() >> dp.m.then_laplace(10.0)
    assert total.map(1) <= EPSILON + 1e-9
    return lambda data, n: np.array([total([int(x) for x in data]) for _ in range(n)])


def worlds(rows: Any, n: int) -> tuple[Any, Any, Any]:
    """User, world and value of each row of so many worlds."""
    rows = np.asarray(rows, np.float64)
    return np.arange(n * len(rows)), np.repeat(np.arange(n), len(rows)), np.tile(rows, n)


def smartnoise(case: str) -> Make:
    import pandas as pd
    import snsql

    table = {
        "row_privacy": False, "max_ids": 1, "sample_max_ids": True, "censor_dims": False, "clamp_counts": False,
        "clamp_columns": True, "use_dpsu": False, "uid": {"type": "int", "private_id": True}, "grp": {"type": "int"},
        "v": {"type": "float", "lower": 0.0, "upper": 1.0, "nullable": False},
    }  # fmt: skip
    query = {
        "count": "SELECT grp, COUNT(v) AS a FROM t GROUP BY grp",
        "sum": "SELECT grp, SUM(v) AS a FROM t GROUP BY grp",
    }[case]

    def release(rows: Any, n: int) -> Any:
        frame = pd.DataFrame(dict(zip(("uid", "grp", "v"), worlds(rows, n), strict=True)))
        how = {"privacy": snsql.Privacy(epsilon=EPSILON, delta=DELTA), "metadata": {"": {"": {"t": table}}}}
        reader = snsql.from_connection(frame, engine="pandas", **how)
        found = dict(map(tuple, reader.execute(query)[1:]))
        return np.array([float(found[i]) for i in range(n)])

    return release


def pipelinedp(case: str) -> Make:
    import pipeline_dp as pdp

    def release(rows: Any, n: int) -> Any:
        accountant = pdp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=0)
        metric = {"count": pdp.Metrics.COUNT, "sum": pdp.Metrics.SUM}[case]
        wanted = pdp.AggregateParams(
            metrics=[metric], noise_kind=pdp.NoiseKind.LAPLACE, max_partitions_contributed=1,
            max_contributions_per_partition=1, min_value=0, max_value=1,
        )  # fmt: skip
        columns = pdp.DataExtractors(lambda r: r[0], lambda r: r[1], lambda r: r[2])
        engine = pdp.DPEngine(accountant, pdp.LocalBackend())
        data = list(zip(*(own.tolist() for own in worlds(rows, n)), strict=True))
        answers = engine.aggregate(data, wanted, columns, public_partitions=list(range(n)))
        accountant.compute_budgets()
        found = {key: next(iter(each)) for key, each in answers}
        return np.array([float(found[i]) for i in range(n)])

    return release


def tumult(case: str) -> Make:
    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = tempfile.mkdtemp(prefix="tumult-")
    made = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    made = made.config("spark.sql.warehouse.dir", f"{folder}/warehouse").config("spark.local.dir", folder)
    spark = made.config("spark.sql.shuffle.partitions", "2").config("spark.driver.memory", "2g").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    def release(rows: Any, n: int) -> Any:
        _, groups, values = worlds(rows, n)
        frame = spark.createDataFrame(pd.DataFrame({"grp": groups.astype(int), "v": values}), "grp bigint, v double")
        session = Session.from_dataframe(PureDPBudget(EPSILON), "t", frame, protected_change=AddOneRow())
        query = QueryBuilder("t").groupby(KeySet.from_dict({"grp": list(range(n))}))
        query = query.count("a") if case == "count" else query.sum("v", 0.0, 1.0, "a")
        found = session.evaluate(query, PureDPBudget(EPSILON)).toPandas().sort_values("grp")
        return found["a"].to_numpy(np.float64)

    return release


def opacus(case: str) -> Make:
    import torch
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    torch.set_num_threads(1)
    module = GradSampleModule(torch.nn.Linear(1, 1, bias=False))
    secure = {"secure_mode": True} if case.endswith("secure mode") else {}
    how = {"noise_multiplier": RATIO, "max_grad_norm": 1.0, "expected_batch_size": 1, **secure}
    optimizer = DPOptimizer(torch.optim.SGD(module.parameters(), lr=1.0), **how)
    weight = next(module.parameters())

    def step(rows: Any) -> float:
        with torch.no_grad():
            weight.zero_()
        optimizer.zero_grad()
        module(torch.tensor(np.asarray(rows, np.float32).reshape(-1, 1))).sum().backward()
        optimizer.step()
        return float(weight)

    return lambda rows, n: np.array([step(rows) for _ in range(n)], np.float32)


def jaxprivacy(_: str) -> Make:
    import jax
    import jax.numpy as jnp
    from jax_privacy.clipping import clipped_grad
    from jax_privacy.noise_addition import gaussian_privatizer

    gradient = clipped_grad(lambda w, x: jnp.sum(w * x), l2_clip_norm=1.0, batch_argnums=1)

    def step(seed: Any, total: Any) -> Any:
        privatizer = gaussian_privatizer(stddev=RATIO, prng_key=seed)
        return privatizer.update(total, privatizer.init(jnp.zeros(1)))[0]

    steps = jax.jit(jax.vmap(step, (0, None)))

    def release(rows: Any, n: int) -> Any:
        total = gradient(jnp.zeros(1), jnp.asarray(np.asarray(rows, np.float32).reshape(-1, 1)))
        seeds = [jax.random.key(int.from_bytes(os.urandom(4), "big")) for _ in range(-(-n // BLOCK))]
        made = [np.asarray(steps(jax.random.split(seed, BLOCK), total))[:, 0] for seed in seeds]
        return np.concatenate(made)[:n]

    return release


def synth(case: str) -> Make:
    """SmartNoise's MST on codes of declared columns; the rows are ``(people, columns)``, and so is one output."""
    import pandas as pd
    from snsynth import Synthesizer
    from snsynth.transform import LabelTransformer, TableTransformer

    def fit(rows: Any, _: int) -> Any:
        frame = pd.DataFrame(rows.astype(int), columns=[f"c{i}" for i in range(rows.shape[1])])
        every = [LabelTransformer(nullable=False) for _ in frame.columns]
        for own, name in zip(every, frame.columns, strict=True):
            own.fit(list(range(SIZES[int(name[1:])])))
        made = Synthesizer.create(case, epsilon=EPSILON, delta=DELTA)
        made.fit(frame, transformer=TableTransformer(every), preprocessor_eps=0.0)
        return np.asarray(made.sample(len(frame)), np.int64)[None]

    return fit


def dpmm(case: str) -> Make:
    import pandas as pd
    from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

    kind = {"mst": MSTPipeline, "aim": AIMPipeline, "privbayes": PrivBayesPipeline}[case]

    def fit(rows: Any, _: int) -> Any:
        names = [f"c{i}" for i in range(rows.shape[1])]
        frame = pd.DataFrame(rows.astype(int), columns=names).astype("category")
        for i, name in enumerate(names):
            frame[name] = frame[name].cat.set_categories(range(SIZES[i]))
        made = kind(epsilon=EPSILON, delta=DELTA, proc_epsilon=None, n_jobs=1)
        made.fit(frame, {name: {"categories": list(range(SIZES[i]))} for i, name in enumerate(names)})
        return made.generate(len(frame))[names].astype(int).to_numpy()[None]

    return fit


SIZES = (8, 6, 5, 4)
"""How many values the columns of the synthetic cases have."""
PACKAGES = {
    "diffprivlib": ("diffprivlib", "numpy"), "opendp": ("opendp",), "smartnoise": ("smartnoise-sql", "opendp"),
    "pipelinedp": ("pipeline-dp", "python-dp"), "tumult": ("tmlt.analytics", "tmlt.core"),
    "opacus": ("opacus", "torch"), "jaxprivacy": ("jax-privacy", "jax"),
    "synth": ("smartnoise-synth", "mbi"), "dpmm": ("dpmm",),
}  # fmt: skip


def send(where: Any, **arrays: Any) -> None:
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    where.write(struct.pack("<q", len(packed.getvalue())) + packed.getvalue())
    where.flush()


def receive(where: Any) -> dict[str, Any] | None:
    head = where.read(8)
    if len(head) < 8:
        return None
    with np.load(io.BytesIO(where.read(struct.unpack("<q", head)[0])), allow_pickle=False) as held:
        return {name: held[name] for name in held.files}


def main() -> None:
    library, _, case = sys.argv[1].partition(": ")
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    make = globals()[library](case)
    send(out, versions=np.array([f"{name} {version(name)}" for name in PACKAGES[library]]))
    while (asked := receive(sys.stdin.buffer)) is not None:
        try:
            send(out, outputs=make(asked["data"], int(asked["n"])))
        except Exception as error:  # noqa: BLE001  # what is raised is what the asker sees
            send(out, raised=np.array(f"{type(error).__name__}: {error}"[:200]))


if __name__ == "__main__":
    main()
