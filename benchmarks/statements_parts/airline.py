"""Thirty questions about an airline, of the kind that dashboards and notebooks ask. The unit is the plane."""

import random
from datetime import datetime, timedelta

import pyarrow as pa
from statements_parts.world import World

_chance = random.Random(1)
_CARRIERS = ["AA", "B6", "DL", "UA", "WN"]
_AIRPORTS = {"ATL": "south", "BOS": "east", "DEN": "middle", "LAX": "west", "MIA": "south", "SEA": "west"}
_HOME = {plane: _chance.choice(_CARRIERS) for plane in range(400)}


def _flight() -> tuple[object, ...]:
    plane = _chance.randrange(400)
    departs = datetime(2013, 1, 1) + timedelta(minutes=_chance.randrange(365 * 24 * 60))  # noqa: DTZ001  # zoneless
    cancelled = _chance.random() < 0.03
    late = None if cancelled else float(round(_chance.expovariate(1 / 15) - 8))
    distance = _chance.choice([187, 404, 746, 1005, 1620, 2475])
    minutes = None if cancelled else float(round(distance / 7 + _chance.gauss(25, 5)))
    arrives = None if late is None else late + round(_chance.gauss(-3, 9))
    return (
        f"N{plane:03d}", _HOME[plane], _chance.choice(["EWR", "JFK", "LGA"]), _chance.choice(list(_AIRPORTS)),
        departs.date(), departs, late, arrives, minutes, distance, cancelled,
    )  # fmt: skip


_NAMES = [
    "tailnum",
    "carrier",
    "origin",
    "dest",
    "flown",
    "departs",
    "dep_delay",
    "arr_delay",
    "air_time",
    "distance",
    "cancelled",
]
_FLIGHTS = [_flight() for _ in range(9_000)]
AIRLINE = World(
    name="flights",
    person="tailnum",
    tables={
        "flights": pa.table(dict(zip(_NAMES, (list(column) for column in zip(*_FLIGHTS, strict=True)), strict=True))),
        "repairs": pa.table(
            {
                "tailnum": [f"N{_chance.randrange(400):03d}" for _ in range(600)],
                "cost": [float(_chance.randrange(100, 3_000)) for _ in range(600)],
            }
        ),
        "airlines": pa.table({"carrier": _CARRIERS, "name": ["American", "JetBlue", "Delta", "United", "Southwest"]}),
        "airports": pa.table({"faa": list(_AIRPORTS), "region": list(_AIRPORTS.values())}),
    },
    declared={
        "carrier": _CARRIERS,
        "origin": ["EWR", "JFK", "LGA"],
        "dep_delay": (-60, 300),
        "arr_delay": (-90, 300),
        "air_time": (20, 500),
        "distance": (80, 5_000),
    },
    private=("repairs",),
    public=("airlines", "airports"),
)

STATEMENTS: list[tuple[str, str]] = [
    ("SELECT COUNT(*) AS flights FROM flights", ""),
    ("SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC", ""),
    ("SELECT carrier, AVG(dep_delay) AS late, COUNT(*) AS n FROM flights WHERE NOT cancelled GROUP BY carrier", ""),
    ("SELECT origin, dest, COUNT(*) AS n FROM flights GROUP BY origin, dest", ""),
    ("SELECT MONTH(flown) AS month, AVG(arr_delay) AS late FROM flights GROUP BY month ORDER BY month", ""),
    ("SELECT DATE_TRUNC('month', flown) AS month, COUNT(*) AS n FROM flights GROUP BY 1 ORDER BY 1", ""),
    ("SELECT FLOOR(distance / 500) * 500 AS band, COUNT(*) AS n, AVG(air_time) AS t FROM flights GROUP BY band", ""),
    (
        "SELECT origin, AVG(arr_delay > 15) AS late FROM flights GROUP BY origin",
        "SELECT origin, AVG(CAST(arr_delay > 15 AS INT)) AS late FROM flights GROUP BY origin",
    ),
    ("SELECT carrier, SUM(cancelled) AS n FROM flights GROUP BY carrier", ""),
    ("SELECT a.name, COUNT(*) AS n FROM flights f JOIN airlines a ON f.carrier = a.carrier GROUP BY a.name", ""),
    (
        (
            "SELECT p.region, AVG(f.arr_delay) AS late FROM flights AS f LEFT JOIN airports AS p ON f.dest = p.faa"
            " GROUP BY p.region"
        ),
        "",
    ),
    ("SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest HAVING COUNT(*) > 1000 ORDER BY n DESC LIMIT 3", ""),
    (
        (
            "SELECT carrier, 100.0 * SUM(CASE WHEN cancelled THEN 1 ELSE 0 END) / COUNT(*) AS share FROM flights"
            " GROUP BY carrier"
        ),
        "",
    ),
    ("SELECT AVG(distance / (air_time / 60)) AS miles_an_hour FROM flights WHERE air_time > 0", ""),
    ("SELECT COUNT(*) AS n FROM flights WHERE dest ILIKE 'l%' OR dest ILIKE '%a'", ""),
    ("SELECT EXTRACT(hour FROM departs) AS hour, AVG(dep_delay) AS late FROM flights GROUP BY 1", ""),
    ("SELECT strftime(flown, '%Y-%m') AS month, COUNT(*) AS n FROM flights GROUP BY month", ""),
    ("SELECT AVG(arr_delay) AS late FROM flights WHERE dest IN (SELECT faa FROM airports WHERE region = 'west')", ""),
    ("SELECT COUNT(*) AS n FROM flights WHERE tailnum IN (SELECT tailnum FROM repairs WHERE cost > 1000)", ""),
    (
        (
            "SELECT carrier, COUNT(*) AS n FROM flights f WHERE NOT EXISTS (SELECT 1 FROM repairs r WHERE r.tailnum ="
            " f.tailnum) GROUP BY carrier"
        ),
        "",
    ),
    (
        (
            "SELECT CASE WHEN DAYOFWEEK(flown) IN (0, 6) THEN 'weekend' ELSE 'weekday' END AS kind, AVG(dep_delay) AS"
            " late FROM flights GROUP BY kind"
        ),
        "",
    ),
    (
        (
            "SELECT carrier, MEDIAN(arr_delay) AS half, QUANTILE_CONT(arr_delay, 0.9) AS most FROM flights"
            " GROUP BY carrier"
        ),
        "",
    ),
    ("SELECT origin, STDDEV(dep_delay) AS spread, COUNT(DISTINCT tailnum) AS planes FROM flights GROUP BY origin", ""),
    ("SELECT AVG(n) AS flights FROM (SELECT tailnum, CLAMP(COUNT(*), 0, 64) AS n FROM flights GROUP BY tailnum) p", ""),
    (
        (
            "SELECT AVG(CLAMP(gap, 0, 60)) AS days FROM (SELECT tailnum, DATE_DIFF('day', LAG(flown) OVER (PARTITION BY"
            " tailnum ORDER BY departs), flown) AS gap FROM flights) g"
        ),
        "",
    ),
    (
        (
            "SELECT COUNT(*) AS n FROM flights WHERE flown >= DATE '2013-06-01' AND flown < DATE '2013-06-01' +"
            " INTERVAL 3 MONTH"
        ),
        "",
    ),
    (
        (
            "SELECT origin, AVG(COALESCE(arr_delay, dep_delay, 0)) AS late, COUNT(*) FILTER (WHERE arr_delay > 60) AS"
            " bad FROM flights GROUP BY origin"
        ),
        "",
    ),
    ("SELECT carrier, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM flights GROUP BY carrier", ""),
    ("SELECT carrier, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM flights GROUP BY carrier", ""),
    ("SELECT carrier, origin, COUNT(*) AS n FROM flights GROUP BY ROLLUP (carrier, origin)", ""),
]
