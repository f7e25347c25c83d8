"""Statements about a shop and a census, after what SmartNoise SQL and Qrlew document as supported."""

import random
from datetime import datetime, timedelta

import pyarrow as pa
from statements_parts.world import World

_chance = random.Random(2)
_ITEMS = ["apple", "book", "chair", "desk", "Étui"]
_COUNTRIES = ["AT", "BE", "CH", "DE"]


def _order() -> tuple[object, ...]:
    bought = datetime(2022, 1, 1) + timedelta(minutes=_chance.randrange(2 * 365 * 24 * 60))  # noqa: DTZ001  # zoneless
    shipped = None if _chance.random() < 0.1 else bought.date() + timedelta(days=_chance.randrange(9))
    discount = None if _chance.random() < 0.3 else _chance.choice([0.0, 0.05, 0.1, 0.25])
    return (
        _chance.randrange(300), _chance.choice(_ITEMS), float(_chance.randrange(100, 20_000)) / 100,
        _chance.randrange(1, 9), discount, bought, shipped, _chance.choice(_COUNTRIES),
        _chance.choice(["paid", "Paid ", "open", "returned"]), _chance.random() < 0.2,
    )  # fmt: skip


def _table(names: str, rows: list[tuple[object, ...]]) -> pa.Table:
    return pa.table(dict(zip(names.split(), (list(column) for column in zip(*rows, strict=True)), strict=True)))


SHOP = World(
    name="orders",
    person="customer",
    tables={
        "orders": _table(
            "customer item price quantity discount bought shipped country status gift", [_order() for _ in range(6_000)]
        ),
        "customers": _table(
            "customer city birth vip",
            [(i, _chance.choice(["Bern", "Graz", "Wien"]), 1940 + i % 65, _chance.random() < 0.1) for i in range(300)],
        ),
        "items": pa.table(
            {
                "item": _ITEMS,
                "category": ["food", "paper", "wood", "wood", "paper"],
                "weight": [0.2, 0.5, 7.0, 30.0, 0.1],
            }
        ),
        "regions": pa.table({"code": _COUNTRIES, "alpine": [True, False, True, False]}),
    },
    declared={
        "item": _ITEMS,
        "country": _COUNTRIES,
        "status": ["paid", "Paid ", "open", "returned"],
        "price": (1, 200),
        "quantity": [1, 2, 3, 4, 5, 6, 7, 8],
        "discount": (0, 1),
    },
    private=("customers",),
    public=("items", "regions"),
)
CENSUS = World(
    name="census",
    person="pid",
    tables={
        "census": _table(
            "pid age sex educ married income state",
            [
                (
                    i,
                    _chance.randrange(18, 90),
                    _chance.choice(["f", "m"]),
                    _chance.randrange(1, 17),
                    _chance.random() < 0.5,
                    float(round(_chance.lognormvariate(10, 0.7))),
                    _chance.choice(["CA", "NV", "OR", "WA"]),
                )
                for i in range(4_000)
            ],
        )
    },
    declared={
        "age": (0, 100),
        "sex": ["f", "m"],
        "educ": list(range(1, 17)),
        "income": (0, 500_000),
        "state": ["CA", "NV", "OR", "WA"],
    },
)

_SHOP_TEXTS: list[str | tuple[str, str]] = [
    # selections and projections
    "SELECT COUNT(*) AS n FROM orders",
    "SELECT COUNT(1) AS n FROM orders",
    "SELECT COUNT(discount) AS n FROM orders",
    "SELECT count(*) n, sum(price) total FROM orders",
    "SELECT SUM(price * quantity) AS turnover FROM orders",
    "SELECT AVG(price) AS a, SUM(price) AS s, COUNT(price) AS c FROM orders WHERE price > 20",
    "SELECT SUM(price * (1 - COALESCE(discount, 0))) AS net FROM orders",
    "SELECT AVG(price) AS mean FROM orders WHERE country = 'AT' AND quantity BETWEEN 2 AND 4",
    "SELECT COUNT(*) AS n FROM orders WHERE country IN ('AT', 'CH') OR item = 'book'",
    "SELECT COUNT(*) AS n FROM orders WHERE NOT (country = 'AT')",
    "SELECT COUNT(*) AS n FROM orders WHERE country != 'AT' AND discount IS NOT NULL",
    "SELECT COUNT(*) AS n FROM orders WHERE status LIKE 'p%'",
    "SELECT COUNT(*) AS n FROM orders WHERE status NOT ILIKE 'PAID%'",
    "SELECT COUNT(*) AS n FROM orders WHERE item ILIKE 'É%'",
    "SELECT COUNT(*) AS n FROM orders WHERE LOWER(TRIM(status)) = 'paid'",
    "SELECT COUNT(*) AS n FROM orders WHERE CHAR_LENGTH(item) > 4",
    "SELECT COUNT(*) AS n FROM orders WHERE POSITION('a' IN item) > 0",
    "SELECT COUNT(*) AS n FROM orders WHERE CONTAINS(item, 'oo')",
    "SELECT COUNT(*) AS n FROM orders WHERE STARTS_WITH(item, 'b') OR ENDS_WITH(item, 'k')",
    "SELECT COUNT(*) AS n FROM orders WHERE SUBSTR(item, 1, 1) = 'd'",
    "SELECT COUNT(*) AS n FROM orders WHERE LEFT(item, 2) = 'bo' AND RIGHT(item, 1) = 'k'",
    "SELECT COUNT(*) AS n FROM orders WHERE CONCAT(country, '-', quantity) = 'AT-3'",
    "SELECT COUNT(*) AS n FROM orders WHERE country || '/' || quantity = 'BE/2'",
    "SELECT COUNT(*) AS n FROM orders WHERE REGEXP_MATCHES(item, '^a.*e$')",
    "SELECT COUNT(*) AS n FROM orders WHERE MD5(item) LIKE 'a%'",
    "SELECT COUNT(*) AS n FROM orders WHERE RANDOM() < 0.5",
    "SELECT COUNT(*) AS n FROM orders WHERE bought > CURRENT_DATE - INTERVAL 30 DAY",
    # functions of numbers
    "SELECT SUM(ABS(price - 100)) AS away FROM orders",
    "SELECT AVG(SQRT(price)) AS root FROM orders",
    "SELECT AVG(LN(price)) AS l, AVG(LOG10(price)) AS k FROM orders",
    "SELECT AVG(EXP(discount)) AS e FROM orders",
    "SELECT AVG(POWER(price, 2)) AS square FROM orders",
    "SELECT AVG(price ** 2) AS square FROM orders",
    "SELECT SUM(FLOOR(price)) AS whole, SUM(CEIL(price)) AS up, SUM(ROUND(price)) AS near FROM orders",
    "SELECT SUM(ROUND(price, 1)) AS near, SUM(TRUNC(price)) AS cut FROM orders",
    "SELECT SUM(SIGN(price - 100)) AS s FROM orders",
    "SELECT SUM(quantity % 3) AS rest, SUM(MOD(quantity, 4)) AS other FROM orders",
    "SELECT SUM(quantity // 2) AS halves FROM orders",
    "SELECT SUM(GREATEST(quantity, 3)) AS g, SUM(LEAST(price, 50)) AS l FROM orders",
    "SELECT SUM(NULLIF(quantity, 1)) AS n FROM orders",
    "SELECT AVG(price / NULLIF(quantity, 0)) AS each FROM orders",
    "SELECT AVG(LOG2(price)) AS l FROM orders",
    "SELECT AVG(SIN(price)) AS s FROM orders",
    "SELECT SUM(CAST(price AS INTEGER)) AS n FROM orders",
    "SELECT SUM(CAST(price AS DECIMAL(10, 1))) AS n FROM orders",
    "SELECT AVG(quantity::DOUBLE) AS n FROM orders",
    "SELECT SUM(IF(gift, quantity, 0)) AS gifts FROM orders",
    "SELECT SUM(CASE country WHEN 'AT' THEN 2 WHEN 'BE' THEN 3 ELSE 1 END) AS w FROM orders",
    "SELECT SUM(CASE WHEN price > 100 THEN price ELSE 0 END) AS dear FROM orders",
    "SELECT AVG(-price) AS minus, AVG(price - quantity) AS difference FROM orders",
    # aggregates
    "SELECT SUM(quantity) AS q, AVG(quantity) AS a FROM orders",
    "SELECT VARIANCE(price) AS v, STDDEV(price) AS s FROM orders",
    "SELECT VAR_POP(price) AS v, STDDEV_POP(price) AS s FROM orders",
    "SELECT CORR(price, quantity) + 1 AS r, COVAR_POP(price, quantity) AS c FROM orders WHERE quantity * 20 < price",
    "SELECT MEDIAN(price) AS m FROM orders",
    "SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY price) AS q FROM orders",
    "SELECT QUANTILE_CONT(price, 0.75) AS q, APPROX_QUANTILE(price, 0.1) AS p FROM orders",
    (
        "SELECT MIN(price) AS low, MAX(price) AS high FROM orders",
        "SELECT QUANTILE_CONT(price, 0.005), QUANTILE_CONT(price, 0.995) FROM orders",
    ),
    "SELECT COUNT(DISTINCT customer) AS people FROM orders",
    "SELECT COUNT(DISTINCT item) AS items FROM orders",
    "SELECT COUNT(DISTINCT customer) FILTER (WHERE gift) AS givers FROM orders",
    "SELECT SUM(DISTINCT quantity) AS s FROM orders",
    "SELECT COUNT(*) FILTER (WHERE gift) AS g, COUNT(*) FILTER (WHERE NOT gift) AS o FROM orders",
    "SELECT COUNT_IF(price > 100) AS dear FROM orders",
    "SELECT SUM(gift) AS gifts FROM orders",
    ("SELECT AVG(gift) AS share FROM orders", "SELECT AVG(gift::INT) AS share FROM orders"),
    "SELECT AVG(CAST(gift AS INT)) AS share, AVG(CASE WHEN price > 150 THEN 1.0 ELSE 0.0 END) AS dear FROM orders",
    "SELECT SUM(price) / COUNT(*) AS mean, SUM(price) / SUM(quantity) AS each FROM orders",
    "SELECT ROUND(AVG(price), 2) AS mean, ROUND(100.0 * COUNT_IF(gift) / COUNT(*), 1) AS percent FROM orders",
    "SELECT CAST(AVG(price) AS INTEGER) AS mean FROM orders",
    "SELECT STRING_AGG(item, ',') AS items FROM orders",
    "SELECT MODE(item) AS most FROM orders",
    "SELECT SKEWNESS(price) + 3 AS s, KURTOSIS(price) + 5 AS k FROM orders",
    # groups
    "SELECT country, COUNT(*) AS n FROM orders GROUP BY country",
    "SELECT COUNT(*) AS n, country FROM orders GROUP BY 2",
    "SELECT country, item, SUM(price) AS s FROM orders GROUP BY country, item ORDER BY 1, 2",
    "SELECT country, AVG(price) AS p FROM orders GROUP BY ALL ORDER BY p DESC",
    "SELECT quantity, COUNT(*) AS n FROM orders GROUP BY quantity HAVING n > 100 ORDER BY quantity",
    "SELECT quantity % 2 = 0 AS even, COUNT(*) AS n FROM orders GROUP BY even",
    "SELECT UPPER(country) AS c, COUNT(*) AS n FROM orders GROUP BY UPPER(country)",
    "SELECT LOWER(TRIM(status)) AS s, COUNT(*) AS n FROM orders GROUP BY 1",
    "SELECT FLOOR(price / 50) * 50 AS band, COUNT(*) AS n FROM orders GROUP BY band ORDER BY band",
    "SELECT CAST(price / 25 AS INTEGER) AS band, COUNT(*) AS n FROM orders GROUP BY 1",
    "SELECT ROUND(price / 10) * 10 AS band, AVG(quantity) AS q FROM orders GROUP BY 1",
    (
        "SELECT CASE WHEN price < 50 THEN 'low' WHEN price < 150 THEN 'mid' ELSE 'high' END AS b, COUNT(*) AS n"
        " FROM orders GROUP BY b"
    ),
    "SELECT gift, AVG(price) AS p FROM orders GROUP BY gift",
    "SELECT country, COUNT(*) AS n FROM orders GROUP BY country ORDER BY COUNT(*) DESC LIMIT 2",
    "SELECT country, COUNT(*) AS n FROM orders GROUP BY country ORDER BY country OFFSET 1",
    "SELECT country, SUM(price) AS s FROM orders GROUP BY country HAVING SUM(price) > 10000 AND COUNT(*) > 10",
    "SELECT DISTINCT country FROM orders",
    "SELECT DISTINCT country, COUNT(*) AS n FROM orders GROUP BY country",
    "SELECT country, gift, COUNT(*) AS n FROM orders GROUP BY CUBE (country, gift)",
    "SELECT country, gift, COUNT(*) AS n FROM orders GROUP BY GROUPING SETS ((country), (gift))",
    "SELECT country, SUM(COUNT(*)) OVER (ORDER BY country) AS running FROM orders GROUP BY country",
    "SELECT country, ROW_NUMBER() OVER (ORDER BY SUM(price) DESC) AS place FROM orders GROUP BY country",
    # dates
    "SELECT YEAR(bought) AS y, COUNT(*) AS n FROM orders GROUP BY y",
    "SELECT EXTRACT(year FROM bought) AS y, EXTRACT(quarter FROM bought) AS q, COUNT(*) AS n FROM orders GROUP BY 1, 2",
    "SELECT DATE_TRUNC('week', shipped) AS w, COUNT(*) AS n FROM orders WHERE shipped IS NOT NULL GROUP BY w",
    "SELECT DATE_PART('dow', bought) AS d, COUNT(*) AS n FROM orders GROUP BY d",
    "SELECT DAYNAME(bought) AS d, COUNT(*) AS n FROM orders GROUP BY d",
    "SELECT MONTHNAME(bought) AS m, COUNT(*) AS n FROM orders GROUP BY m",
    "SELECT STRFTIME(bought, '%Y') AS y, COUNT(*) AS n FROM orders GROUP BY y",
    (
        "SELECT CAST(DATE_TRUNC('month', bought) AS DATE) AS d, COUNT(*) AS n FROM orders WHERE bought < '2022-07-01'"
        " GROUP BY d"
    ),
    "SELECT AVG(CLAMP(DATE_DIFF('day', CAST(bought AS DATE), shipped), 0, 20)) AS days FROM orders",
    "SELECT AVG(CLAMP(shipped - CAST(bought AS DATE), 0, 20)) AS days FROM orders",
    "SELECT COUNT(*) AS n FROM orders WHERE shipped >= DATE '2022-02-01' + INTERVAL 1 MONTH",
    "SELECT COUNT(*) AS n FROM orders WHERE shipped > CAST(bought AS DATE) + 5",
    "SELECT COUNT(*) AS n FROM orders WHERE bought BETWEEN TIMESTAMP '2022-03-01 00:00:00' AND '2022-04-01'",
    "SELECT COUNT(*) AS n FROM orders WHERE DATE_ADD(shipped, INTERVAL 2 WEEK) < DATE '2022-06-01'",
    "SELECT LAST_DAY(shipped) AS m, COUNT(*) AS n FROM orders WHERE shipped < '2022-06-01' GROUP BY m",
    "SELECT EXTRACT(epoch FROM bought) AS e, COUNT(*) AS n FROM orders GROUP BY e",
    "SELECT HOUR(bought) AS h, AVG(price) AS p FROM orders WHERE MONTH(bought) = 3 GROUP BY h",
    # joins
    "SELECT i.category, SUM(o.price) AS s FROM orders o JOIN items i ON o.item = i.item GROUP BY i.category",
    "SELECT category, COUNT(*) AS n FROM orders JOIN items USING (item) GROUP BY category",
    "SELECT category, COUNT(*) AS n FROM items JOIN orders USING (item) GROUP BY category",
    "SELECT category, COUNT(*) AS n FROM items i RIGHT JOIN orders o ON i.item = o.item GROUP BY category",
    "SELECT category, COUNT(*) AS n FROM orders NATURAL JOIN items GROUP BY category",
    "SELECT i.category, COUNT(*) AS n FROM orders o, items i WHERE o.item = i.item GROUP BY i.category",
    "SELECT SUM(i.weight * o.quantity) AS freight FROM orders o INNER JOIN items i ON i.item = o.item",
    "SELECT r.alpine, AVG(o.price) AS p FROM orders o LEFT JOIN regions r ON o.country = r.code GROUP BY r.alpine",
    (
        "SELECT c.city, COUNT(*) AS n FROM orders o JOIN customers c ON o.customer = c.customer WHERE c.city IN"
        " ('Bern', 'Graz', 'Wien') GROUP BY c.city"
    ),
    "SELECT c.vip, SUM(o.price) AS s FROM orders o JOIN customers c USING (customer) GROUP BY c.vip",
    "SELECT COUNT(*) AS n FROM orders o CROSS JOIN regions r",
    "SELECT COUNT(*) AS n FROM orders a JOIN orders b ON a.item = b.item",
    "SELECT COUNT(*) AS n FROM orders WHERE country IN (SELECT code FROM regions WHERE alpine)",
    "SELECT COUNT(*) AS n FROM orders WHERE item NOT IN (SELECT item FROM items WHERE weight > 1)",
    "SELECT COUNT(*) AS n FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.item = o.item AND i.weight > 1)",
    "SELECT COUNT(*) AS n FROM orders WHERE customer IN (SELECT customer FROM customers WHERE vip)",
    "SELECT COUNT(*) AS n FROM orders o WHERE EXISTS (SELECT * FROM customers c WHERE o.customer = c.customer AND vip)",
    "SELECT COUNT(*) AS n FROM orders WHERE customer NOT IN (SELECT customer FROM orders WHERE status = 'returned')",
    "SELECT COUNT(*) AS n FROM orders WHERE price > (SELECT AVG(price) FROM orders)",
    # sub-queries
    "WITH dear AS (SELECT * FROM orders WHERE price > 150) SELECT country, COUNT(*) AS n FROM dear GROUP BY country",
    "SELECT AVG(p) AS mean FROM (SELECT price * quantity AS p FROM orders WHERE quantity > 2) AS t",
    (
        "WITH a AS (SELECT customer, price FROM orders), b AS (SELECT customer, price * 2 AS d FROM a) SELECT SUM(d)"
        " AS s FROM b"
    ),
    "SELECT COUNT(*) AS people FROM (SELECT DISTINCT customer FROM orders) t",
    "SELECT country, COUNT(*) AS people FROM (SELECT DISTINCT customer, country FROM orders) t GROUP BY country",
    (
        "SELECT AVG(price) AS first FROM (SELECT DISTINCT ON (customer) customer, price FROM orders ORDER BY customer,"
        " bought) t"
    ),
    (
        "SELECT AVG(CLAMP(spent, 0, 5000)) AS spent FROM (SELECT customer, SUM(price) AS spent FROM orders GROUP BY"
        " customer) t"
    ),
    "SELECT COUNT(*) AS n FROM (SELECT customer FROM orders GROUP BY customer HAVING COUNT(*) > 20) t",
    (
        "SELECT often, COUNT(*) AS n FROM (SELECT customer, COUNT(*) > 20 AS often FROM orders GROUP BY customer) t"
        " GROUP BY often"
    ),
    (
        "SELECT AVG(CLAMP(n, 0, 64)) AS n FROM (SELECT customer, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY"
        " bought) AS n FROM orders) t"
    ),
    (
        "SELECT SUM(price) AS s FROM (SELECT price FROM orders WHERE country = 'AT' UNION ALL SELECT price FROM orders"
        " WHERE country = 'BE') t"
    ),
    "SELECT item, price FROM orders LIMIT 5",
    "SELECT * FROM orders",
]
_CENSUS_TEXTS: list[str | tuple[str, str]] = [
    "SELECT sex, AVG(age) AS age FROM census GROUP BY sex",
    "SELECT married, AVG(income) AS i, STDDEV(income) AS s FROM census WHERE age >= 25 GROUP BY married",
    "SELECT educ, AVG(income) AS income FROM census GROUP BY educ ORDER BY educ",
    "SELECT sex, married, COUNT(*) AS n FROM census GROUP BY sex, married",
    "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM census GROUP BY decade",
    "SELECT age // 10 AS decade, AVG(income) AS i FROM census GROUP BY decade HAVING COUNT(*) > 50",
    "SELECT CASE WHEN educ >= 13 THEN 'college' ELSE 'school' END AS level, MEDIAN(income) AS i FROM census GROUP BY 1",
    "SELECT state, SUM(CASE WHEN income > 50000 THEN 1 ELSE 0 END) * 1.0 / COUNT(*) AS rich FROM census GROUP BY state",
    "SELECT AVG(married::INT) AS married, VAR_SAMP(age) AS v FROM census WHERE sex = 'f'",
    "SELECT SUM(income) AS total, COUNT(DISTINCT pid) AS people FROM census WHERE state IN ('CA', 'OR')",
    "SELECT AVG(LN(income + 1)) AS l, AVG(SQRT(age)) AS a FROM census",
    "SELECT BUCKET(income, 20000) AS band, COUNT(*) AS n FROM census WHERE income < 100000 GROUP BY band",
]
_CENSUS_TEXTS[-1] = (
    str(_CENSUS_TEXTS[-1]),
    "SELECT FLOOR(income / 20000) * 20000 AS band, COUNT(*) AS n FROM census WHERE income < 100000 GROUP BY band",
)


def _written(world: str, texts: list[str | tuple[str, str]]) -> list[tuple[str, str, str]]:
    return [(world, text, "") if isinstance(text, str) else (world, *text) for text in texts]


MORE = [*_written("orders", _SHOP_TEXTS), *_written("census", _CENSUS_TEXTS)]
"""The world of each statement, its text, and what means the same in DuckDB where that has other words."""
