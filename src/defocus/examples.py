"""Small data sets to try things on: what the examples of the reference begin with.

Each is opened anew in a folder of its own, which is removed when Python ends. Nothing else of the package uses them.
"""

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from defocus import graphs, learning, local, mechanisms, privacy, release, tables
from defocus.ledger import Bundle, Ledger
from defocus.local.shuffling import Key, Round

__all__ = ["bundle", "folder", "ledger", "people", "ring", "shuffled", "stays", "trainer", "visits"]


def folder() -> Path:
    """A new folder, removed when Python ends.

    >>> list(folder().iterdir())
    []
    """
    place = tempfile.mkdtemp(prefix="defocus-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return Path(place)


def visits() -> tables.Table:
    """A thousand visits of as many people between 30 and 69, of whom one is protected.

    >>> with visits() as table:
    ...     print(table)
    visits: person (integer), age (integer)
    protects everything about one person, added or removed; ...
    """
    rows = pa.table({"person": range(1000), "age": [30 + i % 40 for i in range(1000)]})
    said: dict[str, Any] = {"unit": privacy.user("person"), "budget": privacy.Budget(1), "name": "visits"}
    return tables.open(rows, ledger=folder() / "visits.ledger", **said)


def stays() -> tables.Table:
    """Two days each of two hundred people, of whom one is protected.

    >>> with stays() as table:
    ...     print(table)
    visits: who (integer), day (integer)
    protects everything about one who, added or removed; ...
    """
    rows = pa.table({"who": [i // 2 for i in range(400)], "day": [i % 9 for i in range(400)]})
    said: dict[str, Any] = {"unit": privacy.user("who"), "budget": privacy.Budget(9, 1e-6), "name": "visits"}
    return tables.open(rows, columns={"day": (0, 9)}, ledger=folder() / "visits.ledger", **said)


def people() -> tables.Table:
    """Two thousand people of whom some smoke; each row is protected.

    >>> with people() as table:
    ...     print(table)
    people: age (integer), smoker (boolean)
    protects one row, added or removed; ...
    """
    rows = pa.table({"age": [20 + i % 50 for i in range(2000)], "smoker": [i % 50 < 10 for i in range(2000)]})
    said: dict[str, Any] = {"unit": privacy.rows(), "budget": privacy.Budget(3, 1e-6), "name": "people"}
    return tables.open(rows, ledger=folder() / "people.ledger", **said)


def ring() -> graphs.Network:
    """A hundred nodes in a ring, of which an edge is protected.

    >>> with ring() as network:
    ...     print(network)
    ring: 100 public nodes, undirected
    protects one edge, added or removed; ...
    """
    edges = [(i, (i + 1) % 100) for i in range(100)]
    said: dict[str, Any] = {"unit": privacy.edge(), "budget": privacy.Budget(9), "name": "ring"}
    return graphs.open_graph(edges, nodes=range(100), ledger=folder() / "ring.ledger", **said)


def trainer() -> learning.Trainer:
    """Three steps of a linear model on 200 examples, each of which is protected.

    >>> with trainer() as run:
    ...     run.fit(progress=False).steps
    3
    """
    import torch  # noqa: PLC0415  # slow to load, and not everybody has it

    x = torch.linspace(-1, 1, 800).reshape(200, 4)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    said: dict[str, Any] = {"unit": privacy.rows(), "epsilon": 4, "delta": 1e-5, "ledger": folder() / "run.ledger"}
    data = (x, (x[:, 0] > 0).long())
    return learning.Trainer(model, torch.nn.CrossEntropyLoss(), optimizer, data, batch_size=20, steps=3, **said)


def ledger() -> Ledger:
    """A ledger about visits, each of which is protected, with a budget of epsilon 2 and delta 1e-6.

    >>> with ledger() as book:
    ...     print(book.dataset, book.unit)
    visits one row, added or removed
    """
    terms: dict[str, Any] = {"unit": privacy.rows(), "budget": privacy.Budget(2, 1e-6), "dataset": "visits"}
    return Ledger.open(folder() / "visits.ledger", **terms)


def bundle() -> Bundle:
    """A number of patients, released with epsilon 0.25 and signed by a hospital.

    >>> bundle().verify().facts["epsilon"]
    0.25
    """
    with ledger() as book:
        release.release(mechanisms.Laplace(scale=4), 1402, ledger=book, purpose="patients", request="May")
        return book.bundle("May", key=folder() / "hospital.key")


def shuffled(users: int = 100) -> tuple[local.Oracle, Round, Key, Key]:
    """A question with four answers, its round with a shuffler, and the keys of the shuffler and of the analyser.

    >>> question, described, _, _ = shuffled(3)
    >>> len(described.envelopes(question.encode([1, 2, 3])))
    3
    """
    question, shuffler, analyser = local.oracle("k-rr", 4, epsilon=2), Key.generate(), Key.generate()
    return question, Round(question.design, users, shuffler.public, analyser.public), shuffler, analyser
