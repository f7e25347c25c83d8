"""A table on a server: the same questions as of a table that is opened here, sent by the standard library alone.

What is asked is written down as JSON and lowered to a question on the server, which previews, asks for approval,
charges and releases it. The answer comes with its receipt and is the same object as everywhere.
"""

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final
from urllib.parse import quote, urlsplit

from defocus.answers import Released
from defocus.answers.preview import PreviewColumn
from defocus.errors import InvalidParameterError, NotDeclaredError, Number, RequestWaitsError, ServerError
from defocus.ledger import Receipt
from defocus.server.questions import KINDS
from defocus.tables.aggregates import Aggregate
from defocus.tables.table_questions import spelled, written

__all__ = ["Connection", "RemoteGrouped", "RemotePreview", "RemoteQuery", "RemoteTable", "connect"]

_TIMEOUT = 60.0
_PAUSE, _LONGEST = 0.1, 2.0
_LARGEST = 64 << 20
_DONE = {"released", "failed", "refused", "cancelled"}
_DECLARED = "declared"


def connect(url: str, token: str, dataset: str | None = None) -> "RemoteTable":
    """The table of a data set on a server, to ask as one that is opened here.

    Args:
        url: where the server is, such as ``https://privacy.example``.
        token: a personal token, made on the account page. It is sent by HTTPS only, or on this machine.
        dataset: which data set; the only one by default.

    >>> visits = connect("https://privacy.example", token, dataset="visits")  # doctest: +SKIP
    >>> visits.where("age >= 65").agg(visits=dp.count()).preview(epsilon=0.1)  # doctest: +SKIP
    """
    place = urlsplit(url)
    local = place.hostname in {"127.0.0.1", "localhost", "::1"}
    if place.scheme != "https" and not (place.scheme == "http" and local):
        raise InvalidParameterError(
            "A token is sent by HTTPS only.", fix="write an address that begins with https://, or one on this machine."
        )
    if not token.isascii() or not token.isprintable():
        raise InvalidParameterError("A token is one line of plain characters.", fix="make one on the account page.")
    server = Connection(url.rstrip("/"), token)
    names = [one["name"] for one in server.get("datasets")]
    if dataset is None and len(names) == 1:
        dataset = names[0]
    if dataset is None or dataset not in names:
        raise InvalidParameterError(
            "The server has several data sets." if dataset is None else f"The server has no data set {dataset!r:.60}.",
            fix=f"pass dataset= with one of {', '.join(names) or 'those that a steward declares'}.",
        )
    return RemoteTable(server, dataset)


@final
@dataclass(frozen=True, slots=True)
class Connection:
    """A server, and the token to send."""

    url: str
    token: str = field(repr=False)

    def get(self, path: str) -> Any:
        """What is at a path of the API."""
        return self._send("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """What the API answers to a body."""
        return self._send("POST", path, json.dumps(body).encode())

    def _send(self, method: str, path: str, body: bytes | None) -> Any:
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", body, headers, method=method)  # noqa: S310
        try:
            with _OPENER.open(request, timeout=_TIMEOUT) as response:
                text = response.read(_LARGEST)
        except urllib.error.HTTPError as error:
            with error:
                raise _refusal(error) from None
        except (urllib.error.URLError, ssl.SSLError, OSError):
            raise ServerError(
                f"The server {self.url} cannot be reached.", fix="check its address and the network."
            ) from None
        return json.loads(text) if text else None


class _Same(urllib.request.HTTPRedirectHandler):
    """No redirection is followed: a token goes to its server and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Same)


def _refusal(error: urllib.error.HTTPError) -> ServerError:
    try:
        said = json.loads(error.read(_LARGEST))
        return ServerError(str(said["detail"]), fix=str(said["fix"]))
    except (ValueError, KeyError, TypeError):
        return ServerError(f"The server answered with status {error.code}.", fix="check its address.")


@final
@dataclass(frozen=True, slots=True)
class RemoteTable:
    """A table on a server. Made by :func:`connect`; every method returns a new table, as those of a table here do.

    >>> visits = RemoteTable(Connection("https://privacy.example", "dfc_…"), "visits")
    >>> visits.where("age >= 65").derive(long="days > 7").steps
    (('where', 'age >= 65'), ('derive', {'long': 'days > 7'}))
    """

    server: Connection
    name: str
    steps: tuple[tuple[Any, ...], ...] = ()

    def where(self, condition: str) -> "RemoteTable":
        """Only the rows for which a condition holds."""
        return self._then("where", condition)

    def derive(self, **columns: str) -> "RemoteTable":
        """More columns, each computed from the same row."""
        return self._then("derive", columns)

    def rename(self, names: Mapping[str, str]) -> "RemoteTable":
        """The same table with other names for some columns."""
        return self._then("rename", dict(names))

    def part(self, *values: Any) -> "RemoteTable":
        """Only the rows of some parts."""
        return self._then("part", *values)

    def per_person(self, *by: str, **features: str) -> "RemoteTable":
        """One row for each person, with features of all rows of that person."""
        return self._then("per_person", *by, features)

    def other(self, name: str) -> "RemoteTable":
        """Another private table about the same people."""
        return self._then("other", name)

    def join(self, other: str, *, on: Any, how: str = "left") -> "RemoteTable":
        """Columns of another table that was declared beside this one."""
        return self._then("join", other, dict(on) if isinstance(on, Mapping) else on, how)

    def bound(self, **bounds: Any) -> "RemoteTable":
        """What one person may contribute: rows in all, groups, and rows in each group."""
        return self._then("bound", bounds)

    def group_by(self, *columns: str | Sequence[str], keys: Any = _DECLARED, sets: Any = None) -> "RemoteGrouped":
        """Groups of rows with equal values; see :meth:`.Table.group_by`."""
        names = columns[0] if len(columns) == 1 and isinstance(columns[0], list | tuple) else columns
        listed = keys if keys is None or isinstance(keys, str | Mapping) else list(keys)
        return RemoteGrouped(self._then("group_by", list(names), listed, sets))

    def agg(self, **aggregates: Aggregate) -> "RemoteQuery":
        """What is asked of all rows together."""
        said = {name: spelled(aggregate) for name, aggregate in aggregates.items()}
        return RemoteQuery(self.server, self.name, {"steps": [list(step) for step in self.steps], "aggregates": said})

    def sql_query(self, text: str, **how: Any) -> "RemoteQuery":
        """A SELECT as a question; see :meth:`.Table.sql_query`."""
        if self.steps:
            raise InvalidParameterError("A SELECT is about the whole table.", fix="write the steps in the SELECT.")
        return RemoteQuery(self.server, self.name, {"sql": text, **how})

    def sql(self, text: str, *, epsilon: Number, delta: Number | None = None, **more: Any) -> Released:
        """Release a SELECT: :meth:`sql_query` and its ``release``."""
        released: Released = self.sql_query(text).release(epsilon=epsilon, delta=delta, **more)
        return released

    def synthesis(self, **how: Any) -> "RemoteQuery":
        """Synthetic rows, released as a :class:`~defocus.synthesis.Generator`; parameters of :func:`dp.synthesise`.

        >>> visits = RemoteTable(Connection("https://privacy.example", "dfc_…"), "visits")
        >>> visits.where("age >= 18").synthesis(only=["age"], columns={"age": (18, 99)}).said["columns"]
        {'age': {'bounds': [18, 99]}}
        """
        said = {name: value for name, value in how.items() if value is not None}
        if "columns" in said:
            said["columns"] = {name: _domain(one) for name, one in said["columns"].items()}
        if "rows" in said:
            said["records"] = said.pop("rows")
        return self._asking("synthesis", **said)

    def synthesise(
        self, *, epsilon: Number, delta: Number | None = None, purpose: str | None = None, **asked: Any
    ) -> Any:
        """Release synthetic rows, as :meth:`.Table.synthesise` does: :meth:`synthesis` and its ``release``."""
        how = {name: asked.pop(name) for name in ("reason", "request", "timeout") if name in asked}
        return self.synthesis(**asked).release(epsilon=epsilon, delta=delta, purpose=purpose, **how)

    def model(self, name: str, inputs: Sequence[str], target: str | None = None, **settings: Any) -> "RemoteQuery":
        """A model to fit, such as "logistic" or "k-means", released as a :class:`~defocus.server.questions.Model`.

        >>> visits = RemoteTable(Connection("https://privacy.example", "dfc_…"), "visits")
        >>> visits.model("k-means", ["age", "days"], n_clusters=3).said["settings"]
        {'n_clusters': 3}
        """
        aim = {} if target is None else {"target": target}
        return self._asking("model", model=name, inputs=list(inputs), **aim, settings=settings)

    def graph(self, name: str, statistic: str, *, method: str | None = None, **settings: Any) -> "RemoteQuery":
        """A statistic of a graph about the same people, such as "triangles", as :class:`.Network` has them.

        >>> visits = RemoteTable(Connection("https://privacy.example", "dfc_…"), "visits")
        >>> visits.graph("contacts", "stars", k=3).said["statistic"]
        'stars'
        """
        if self.steps:
            raise InvalidParameterError("A graph has no rows to choose.", fix="ask it of the whole data set.")
        way = {} if method is None else {"method": method}
        return self._asking("graph", graph=name, statistic=statistic.replace("_", "-"), **way, settings=settings)

    def _asking(self, kind: str, **said: Any) -> "RemoteQuery":
        steps = {"steps": [list(step) for step in self.steps]} if self.steps else {}
        return RemoteQuery(self.server, self.name, {"kind": kind, **steps, **said})

    def describe(self) -> dict[str, Any]:
        """What is declared about the data set: columns, unit, purposes, policy, and what is left of its budget."""
        found: dict[str, Any] = self.server.get(f"datasets/{quote(self.name, safe='')}")
        return found

    def _then(self, *step: Any) -> "RemoteTable":
        return replace(self, steps=(*self.steps, step))


def _domain(held: Any) -> Any:
    """What a column may hold, as a question writes it: bounds are a tuple, values a list."""
    if held is None:
        return None
    return {"bounds" if isinstance(held, tuple) else "values": [written(one) for one in held]}


@final
@dataclass(frozen=True, slots=True)
class RemoteGrouped:
    """A table on a server, in groups.

    >>> import defocus as dp
    >>> visits = RemoteTable(Connection("https://privacy.example", "dfc_…"), "visits")
    >>> visits.group_by("ward").agg(n=dp.count()).said["aggregates"]
    {'n': {'function': 'count'}}
    """

    table: RemoteTable

    def agg(self, **aggregates: Aggregate) -> "RemoteQuery":
        """What is asked of each group."""
        return self.table.agg(**aggregates)


@final
@dataclass(frozen=True, slots=True)
class RemotePreview:
    """What an answer would be like, as the server foresees it: free, and from public facts only.

    >>> column = {"name": "n", "how": "noise", "error": 2.0, "interval": 4.0, "by_size": [], "rank": None}
    >>> seen = RemotePreview({"columns": [column], "verdict": {"state": "approved", "why": "it is small"}})
    >>> seen.columns[0].interval, seen.verdict
    (4.0, 'approved: it is small')
    """

    said: Mapping[str, Any]

    @property
    def columns(self) -> tuple[PreviewColumn, ...]:
        """What is known about each column."""
        return tuple(
            PreviewColumn(
                one["name"],
                one["how"],
                one["error"],
                one["interval"],
                tuple((size["rows"], size["error"], size["interval"]) for size in one["by_size"]),
                one["rank"],
            )
            for one in self.said["columns"]
        )

    @property
    def verdict(self) -> str:
        """What the policy would say: approved, waiting for an officer, or refused; and why."""
        return f"{self.said['verdict']['state']}: {self.said['verdict']['why']}"

    def to_dict(self) -> dict[str, Any]:
        """The preview with JSON types only."""
        return dict(self.said)

    def explain(self) -> str:
        """What the release would promise, in words."""
        return str(self.said["explanation"])

    def __str__(self) -> str:
        return f"{self.said['text']}\npolicy: {self.verdict}"


@final
@dataclass(frozen=True, slots=True)
class RemoteQuery:
    """A question to a server: free to preview, approved and charged there before it is released.

    >>> visits = RemoteTable(Connection("https://privacy.example", "dfc_…"), "visits")
    >>> visits.sql_query("SELECT COUNT(*) AS n FROM visits").said
    {'sql': 'SELECT COUNT(*) AS n FROM visits'}
    """

    server: Connection
    dataset: str
    said: Mapping[str, Any]

    def preview(self, *, epsilon: Number, delta: Number | None = None, purpose: str | None = None) -> RemotePreview:
        """How exact each column would be, what it would cost, and what the policy would say. Free."""
        body = {"question": self._priced(epsilon, delta), "purpose": purpose}
        return RemotePreview(self.server.post(f"datasets/{quote(self.dataset, safe='')}/preview", body))

    def release(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        purpose: str | None = None,
        reason: str | None = None,
        request: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Ask for a release and wait for it; the arguments are those of :meth:`.Query.release` and the reason.

        Where an officer has to decide, that is told at once, and nothing was charged: release again later under the
        same name. A name returns the recorded answer for ever.

        Args:
            epsilon: what the release may cost.
            delta: likewise.
            purpose: why, one of the declared purposes.
            reason: why, in words for an officer; the purpose by default.
            request: a name for this request.
            timeout: how many seconds to wait for the answer; for as long as it takes by default.
        """
        if not purpose:
            declared = self.server.get(f"datasets/{quote(self.dataset, safe='')}")["purposes"]
            raise NotDeclaredError(
                "It is not said what the release is for, and a server asks everybody.",
                fix=f"pass purpose= with {'a few words' if not declared else 'one of ' + ', '.join(declared)}.",
            )
        body = {"question": self._priced(epsilon, delta), "purpose": purpose, "reason": reason or purpose}
        found = self.server.post(f"datasets/{quote(self.dataset, safe='')}/requests", {**body, "request": request})
        deadline, pause = None if timeout is None else time.monotonic() + timeout, _PAUSE
        while found["state"] not in _DONE:
            if found["state"] in {"waiting", "asked back"} or (deadline is not None and time.monotonic() > deadline):
                raise RequestWaitsError(
                    f"The request is {found['state']}: {found['why']}.",
                    fix=f"release it again later with request={found['name']!r}.",
                )
            time.sleep(pause)
            pause = min(_LONGEST, 1.5 * pause)
            found = self.server.get(f"requests/{found['id']}")
        if found["state"] != "released":
            raise ServerError(f"The request is {found['state']}: {found['why']}.", fix="ask another question, or less.")
        record = self.server.get(f"requests/{found['id']}/record")
        return KINDS[self.said.get("kind", "table")].read(record["answer"], Receipt.read(record["receipt"]))

    def _priced(self, epsilon: Number, delta: Number | None) -> dict[str, Any]:
        return {**self.said, "epsilon": written(epsilon), **({} if delta is None else {"delta": written(delta)})}
