"""A clinic: missing values in every column, dates, moments, text in several scripts, and two public tables.

The statements are those of a data office that looks at its wards for the first time. The unit is the patient.
"""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from statements_parts.world import World

_chance = random.Random(7)
_WARDS = ["A&E", "Été", "ICU", "onc", "中", ""]
_CODES = ["I10", "E11.9", "J45", " i10", "É1"]
_PATIENTS, _VISITS, _LABS = 1_200, 6_000, 3_000


def _some(drawn: Callable[[], Any], number: int = _VISITS, missing: float = 0.06) -> list[Any]:
    """So many values, some of them missing."""
    return [None if _chance.random() < missing else drawn() for _ in range(number)]


def _moment() -> datetime:
    return datetime(2023, 1, 1) + timedelta(minutes=_chance.randrange(2 * 365 * 24 * 60))  # noqa: DTZ001  # zoneless


def _patient() -> str:
    """A few come often."""
    return f"p{int(_chance.paretovariate(1.2) * 40) % _PATIENTS}"


CLINIC = World(
    name="visits",
    person="patient",
    tables={
        "visits": pa.table(
            {
                "patient": _some(_patient, missing=0),
                "ward": _some(lambda: _chance.choice(_WARDS)),
                "day": _some(lambda: _moment().date()),
                "moment": _some(_moment),
                "days": _some(lambda: _chance.choice([0, 0, 1, 1, 2, 3, 5, 8, 13])),
                "cost": _some(lambda: min(2900.0, round(_chance.lognormvariate(5, 1), 2))),
                "urgent": _some(lambda: _chance.random() < 0.3),
                "sex": _some(lambda: _chance.choice(["m", "f", "x"])),
                "age": _some(lambda: _chance.randrange(101)),
                "score": _some(lambda: _chance.choice([0.1, 0.5, -2.5, 7.5, 3.0, -0.0])),
                "icd": _some(lambda: _chance.choice(_CODES)),
                "site": _some(lambda: _chance.choice([1, 2, 3]), missing=0),
            }
        ),
        "labs": pa.table(
            {
                "patient": [f"p{_chance.randrange(_PATIENTS)}" for _ in range(_LABS)],
                "test": [_chance.choice(["hb", "na", "k"]) for _ in range(_LABS)],
                "result": _some(lambda: round(_chance.gauss(10, 3), 1), _LABS),
            }
        ),
        "wards": pa.table(
            {
                "ward": _WARDS,
                "floor": [1, 2, 2, 3, None, 0],
                "kind": ["acute", "acute", "acute", "long", "long", None],
                "beds": [10, 20, 5, 40, 7, 1],
            }
        ),
        "sites": pa.table({"id": [1, 2, 3], "city": ["Köln", "Basel", "Wien"]}),
    },
    declared={
        "ward": _WARDS,
        "days": (0, 15),
        "cost": (0, 3000),
        "sex": ["m", "f", "x"],
        "age": (0, 100),
        "score": (-3, 8),
        "icd": _CODES,
        "site": [1, 2, 3],
    },
    private=("labs",),
    public=("wards", "sites"),
    rows=1 << 13,
)
STATEMENTS = """
SELECT COUNT(*) FROM visits
SELECT COUNT(ward), COUNT(cost), COUNT(*) FROM visits
SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex
SELECT ward, AVG(cost) AS c FROM visits GROUP BY ward ORDER BY c DESC
SELECT ward, sex, SUM(days) FROM visits GROUP BY ward, sex
SELECT ward, SUM(days) / COUNT(*) AS per FROM visits GROUP BY 1
SELECT kind, COUNT(*) FROM visits JOIN wards USING (ward) GROUP BY kind
SELECT w.kind, AVG(v.days) FROM visits v LEFT JOIN wards w ON v.ward = w.ward GROUP BY w.kind
SELECT city, COUNT(*), AVG(age) FROM visits v JOIN sites s ON v.site = s.id GROUP BY city
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 500
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 100 AND AVG(days) > 2
SELECT EXTRACT(YEAR FROM day) AS y, EXTRACT(MONTH FROM day) AS m, COUNT(*) FROM visits GROUP BY y, m
SELECT DATE_TRUNC('month', day) AS m, COUNT(*) FROM visits GROUP BY m ORDER BY m
SELECT DATE_TRUNC('quarter', moment) AS q, SUM(cost) FROM visits GROUP BY q
SELECT EXTRACT(HOUR FROM moment) AS h, COUNT(*) FROM visits GROUP BY h
SELECT DAYOFWEEK(day) AS d, COUNT(*) FROM visits GROUP BY d
SELECT EXTRACT(DOW FROM moment) AS d, AVG(days) FROM visits GROUP BY d
SELECT STRFTIME(day, '%Y-%m') AS ym, COUNT(*) FROM visits GROUP BY ym
SELECT YEAR(moment) AS y, COUNT(DISTINCT patient) FROM visits GROUP BY y
SELECT COUNT(*) FROM visits WHERE day BETWEEN DATE '2023-03-01' AND DATE '2023-06-30'
SELECT COUNT(*) FROM visits WHERE moment >= TIMESTAMP '2024-01-01 00:00:00' AND moment < TIMESTAMP '2024-07-01 12:30:00'
SELECT COUNT(*) FROM visits WHERE day >= DATE '2024-01-01' - INTERVAL 30 DAY
SELECT COUNT(*) FROM visits WHERE DATE_DIFF('day', DATE '2023-01-01', day) < 100
SELECT AVG(DATE_DIFF('day', DATE '2023-01-01', day)) FROM visits
SELECT COUNT(*) FROM visits WHERE ward LIKE '%o%'
SELECT COUNT(*) FROM visits WHERE ward ILIKE 'é%'
SELECT COUNT(*) FROM visits WHERE LOWER(TRIM(icd)) = 'i10'
SELECT UPPER(TRIM(icd)) AS code, COUNT(*) FROM visits GROUP BY code
SELECT LEFT(TRIM(icd), 1) AS chapter, COUNT(*) FROM visits GROUP BY chapter
SELECT SUBSTRING(icd, 1, 3) AS c, COUNT(*) FROM visits GROUP BY c
SELECT LENGTH(ward) AS l, COUNT(*) FROM visits GROUP BY l
SELECT ward || '/' || sex AS both, COUNT(*) FROM visits GROUP BY 1
SELECT CONCAT(ward, '-', sex) AS both, COUNT(*) FROM visits GROUP BY 1
SELECT REPLACE(icd, '.', '') AS c, COUNT(*) FROM visits GROUP BY c
SELECT COUNT(*) FROM visits WHERE ward IS NULL
SELECT COUNT(*) FROM visits WHERE ward IS NOT NULL AND sex <> 'm'
SELECT COUNT(*) FROM visits WHERE NOT (sex = 'm' OR age > 50)
SELECT COUNT(*) FROM visits WHERE sex IS DISTINCT FROM 'm'
SELECT COUNT(*) FROM visits WHERE ward IN ('ICU', 'onc', '中')
SELECT COUNT(*) FROM visits WHERE ward NOT IN ('ICU', 'onc')
SELECT COUNT(*) FROM visits WHERE urgent
SELECT AVG(CASE WHEN urgent THEN 1 ELSE 0 END) FROM visits
SELECT AVG(urgent::INT) FROM visits
SELECT SUM(CASE WHEN sex = 'f' THEN cost ELSE 0 END) FROM visits
SELECT SUM(CASE WHEN sex = 'f' THEN cost END) / SUM(cost) FROM visits
SELECT COUNT(*) FILTER (WHERE urgent) AS u, COUNT(*) FROM visits
SELECT ward, COUNT(*) FILTER (WHERE days > 3) * 1.0 / COUNT(*) AS share FROM visits GROUP BY ward
SELECT COUNT_IF(days > 3) FROM visits
SELECT COALESCE(ward, 'unknown') AS w, COUNT(*) FROM visits GROUP BY w
SELECT AVG(COALESCE(days, 0)) FROM visits
SELECT SUM(COALESCE(cost, 0) * 1.2) FROM visits
SELECT IFNULL(sex, '?') AS s, COUNT(*) FROM visits GROUP BY s
SELECT AVG(NULLIF(days, 0)) FROM visits
SELECT COUNT(DISTINCT patient) FROM visits
SELECT ward, COUNT(DISTINCT patient) FROM visits GROUP BY ward
SELECT COUNT(DISTINCT icd) FROM visits
SELECT sex, COUNT(DISTINCT ward) FROM visits GROUP BY sex
SELECT MEDIAN(cost) FROM visits
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY cost) FROM visits
SELECT MIN(age), MAX(age) FROM visits
SELECT STDDEV(cost), VARIANCE(days) FROM visits
SELECT VAR_SAMP(age), STDDEV_POP(age) FROM visits
SELECT CORR(age, cost), COVAR_POP(age, days) FROM visits
SELECT FLOOR(cost / 500) * 500 AS bin, COUNT(*) FROM visits GROUP BY bin
SELECT age // 10 * 10 AS decade, COUNT(*), AVG(cost) FROM visits GROUP BY decade
SELECT age % 2 AS odd, COUNT(*) FROM visits GROUP BY odd
SELECT ROUND(cost, -2) AS c, COUNT(*) FROM visits WHERE cost < 1000 GROUP BY c
SELECT SUM(LN(1 + cost)) FROM visits
SELECT AVG(SQRT(cost)) FROM visits
SELECT AVG(ABS(score)) FROM visits
SELECT AVG(score) FROM visits
SELECT COUNT(score) FROM visits
SELECT SUM(POWER(days, 2)) FROM visits
SELECT AVG(LEAST(cost, 500)) FROM visits
SELECT AVG(GREATEST(age, 18)) FROM visits
SELECT AVG(cost / NULLIF(days, 0)) FROM visits WHERE days > 0
SELECT patient FROM visits
SELECT * FROM visits LIMIT 5
SELECT ROW_NUMBER() OVER (ORDER BY cost) FROM visits
SELECT ward, COUNT(*), RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM visits GROUP BY ward
SELECT AVG(n) FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient)
SELECT COUNT(*) FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient) WHERE n >= 3
SELECT n, COUNT(*) FROM (SELECT patient, LEAST(COUNT(*), 10) AS n FROM visits GROUP BY patient) GROUP BY n
SELECT ward, COUNT(*) FROM visits WHERE patient IN (SELECT patient FROM labs WHERE result > 12) GROUP BY ward
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM labs l WHERE l.patient = v.patient AND l.test = 'hb')
SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM wards WHERE beds >= 10)
SELECT COUNT(*) FROM visits v JOIN labs l ON v.patient = l.patient
SELECT test, AVG(result) FROM labs GROUP BY test
SELECT sex, AVG(beds) FROM visits JOIN wards USING (ward) GROUP BY sex
SELECT ward, COUNT(*) FROM visits GROUP BY ward UNION ALL SELECT sex, COUNT(*) FROM visits GROUP BY sex
SELECT DISTINCT ward FROM visits
SELECT DISTINCT sex, urgent FROM visits
SELECT MODE(ward) FROM visits
SELECT STRING_AGG(ward, ',') FROM visits
SELECT urgent, COUNT(*) FROM visits GROUP BY urgent
SELECT age > 50 AS old, COUNT(*), SUM(cost) FROM visits GROUP BY old
SELECT ward, SUM(cost) - SUM(days) AS diff FROM visits GROUP BY ward
SELECT sex, ROUND(AVG(cost), 2) AS c FROM visits GROUP BY sex
SELECT 100.0 * SUM(CASE WHEN age >= 65 THEN 1 ELSE 0 END) / COUNT(*) AS pct FROM visits
SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)
SELECT SUM(cost) FROM visits WHERE score = 0
SELECT COUNT(*) FROM visits WHERE score > 1
SELECT COUNT(*) FROM visits WHERE score >= 7.5 OR score IS NULL
SELECT CAST(cost AS INTEGER) % 10 AS d, COUNT(*) FROM visits GROUP BY d
SELECT CAST(age AS VARCHAR) AS a, COUNT(*) FROM visits WHERE age < 5 GROUP BY a
SELECT site, COUNT(*) FROM visits GROUP BY site
SELECT COUNT(*) FROM visits WHERE sex = 'M'
SELECT COUNT(*) FROM visits WHERE CURRENT_DATE - day > 30
SELECT SUM(days * cost) FROM visits
SELECT AVG(cost - 100) FROM visits WHERE days BETWEEN 1 AND 5
SELECT LAST_DAY(day) AS d, COUNT(*) FROM visits GROUP BY d
SELECT WEEK(day) AS w, COUNT(*) FROM visits GROUP BY w
SELECT MONTHNAME(day) AS m, COUNT(*) FROM visits GROUP BY m
SELECT DAYNAME(day) AS m, COUNT(*) FROM visits GROUP BY m
SELECT QUARTER(moment) AS q, COUNT(*) FROM visits GROUP BY q
SELECT DATE_PART('month', moment) AS m, COUNT(*) FROM visits GROUP BY m
SELECT moment::DATE AS d, COUNT(*) FROM visits WHERE moment >= '2024-12-25' GROUP BY d
SELECT AVG(EXTRACT(EPOCH FROM moment)) FROM visits
SELECT STARTS_WITH(icd, 'E') AS e, COUNT(*) FROM visits GROUP BY e
SELECT ward, COUNT(*) n FROM visits GROUP BY ALL
SELECT v.ward, COUNT(*) FROM visits AS v WHERE v.sex = 'f' AND v.age BETWEEN 20 AND 30 GROUP BY v.ward
SELECT IF(age >= 65, 'old', 'young') AS a, COUNT(*) FROM visits GROUP BY a
SELECT SPLIT_PART(icd, '.', 1) AS root, COUNT(*) FROM visits GROUP BY root
SELECT REVERSE(ward) AS r, COUNT(*) FROM visits GROUP BY r
SELECT COUNT(*) FROM visits WHERE CONTAINS(icd, '1')
SELECT COUNT(*) FROM visits WHERE POSITION('.' IN icd) > 0
SELECT LPAD(CAST(site AS VARCHAR), 3, '0') AS s, COUNT(*) FROM visits GROUP BY s
SELECT SIGN(score) AS s, COUNT(*) FROM visits GROUP BY s
SELECT AVG(CEIL(cost)) FROM visits
SELECT AVG(ROUND(cost / 7, 1)) FROM visits
SELECT AVG(EXP(score)) FROM visits
SELECT AVG(LOG10(1 + cost)), AVG(LOG(1 + cost)) FROM visits
SELECT AVG(TRUNC(score)) FROM visits
SELECT SUM(DISTINCT days) FROM visits
SELECT COUNT(*) FROM visits WHERE icd SIMILAR TO 'E.*'
SELECT COUNT(*) FROM visits WHERE (ward, sex) IN (('ICU', 'm'), ('onc', 'f'))
SELECT COUNT(*) FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient ORDER BY moment) = 1
SELECT ward, MEDIAN(days), AVG(days) FROM visits GROUP BY ward
SELECT AVG(total) FROM (SELECT patient, ward, SUM(days) AS total FROM visits GROUP BY patient, ward)
SELECT ward, AVG(total) FROM (SELECT patient, ward, SUM(days) AS total FROM visits GROUP BY patient, ward) GROUP BY ward
SELECT COUNT(*) FROM visits, wards WHERE visits.ward = wards.ward AND wards.kind = 'acute'
SELECT SUM(days) FROM visits WHERE day IS NULL
SELECT ward, KURTOSIS(cost) FROM visits GROUP BY ward
SELECT ANY_VALUE(ward) FROM visits
SELECT SUM(cost) AS s, SUM(cost) * 0.19 AS tax FROM visits
SELECT HISTOGRAM(days) FROM visits
SELECT MAX(day) FROM visits
SELECT BOOL_OR(urgent) FROM visits
SELECT PRODUCT(days) FROM visits
SELECT COUNT(*) FROM visits TABLESAMPLE 10 PERCENT
SELECT ward, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM visits WHERE ward IS NOT NULL GROUP BY ward
SELECT MAX(n) FROM (SELECT ward, COUNT(*) AS n FROM visits WHERE ward IS NOT NULL GROUP BY ward)
""".strip().splitlines()
