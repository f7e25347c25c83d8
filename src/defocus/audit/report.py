"""What audits found as one page, and as a record in a ledger, which is signed with its bundle."""

from pathlib import Path
from typing import Any, Protocol

from defocus.answers import export
from defocus.answers.page import document
from defocus.audit.findings import Finding
from defocus.audit.history import History
from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger, Receipt
from defocus.privacy.events import NOTHING
from defocus.release.charge import charge

__all__ = ["Found", "keep", "report"]

_READING = (
    "A violation is wrong with probability at most one minus the confidence. Where none was found nothing is proved:"
    " what is said is what would have been seen."
)


class Found(Protocol):
    """What an audit found: a finding, an attack on membership or secrets, or a history."""

    def to_json(self) -> dict[str, Any]:
        """All of it with JSON types only."""
        ...

    def plot(self) -> Any:
        """A picture of it."""
        ...

    def _repr_html_(self) -> str: ...


def report(path: str | Path, *found: Found, title: str = "Audit") -> Path:
    """Write what audits found to one HTML file, with a picture of each; it loads nothing.

    >>> import tempfile
    >>> from defocus.audit import lower_bound
    >>> home = tempfile.TemporaryDirectory()
    >>> made = report(f"{home.name}/audit.html", lower_bound(sum, ([1, 1], [1, 1, 1]), trials=500, claimed=1))
    >>> "violation" in made.read_text("utf-8")
    True
    >>> home.cleanup()
    """
    if not found:
        raise InvalidParameterError("There is nothing to report.", fix="pass what an audit returned.")
    parts = [f"<h2>{type(each).__name__}</h2>{each._repr_html_()}{each.plot().tag()}" for each in found]
    export.write_bytes(path, document(title, f"<p>{_READING}</p>{''.join(parts)}").encode("utf-8", "replace"))
    return Path(path)


def keep(found: Finding | History, *, ledger: Ledger, request: str, who: str | None = None) -> Receipt:
    """Write what an audit found into a ledger, under a name; :meth:`.Ledger.bundle` signs it like any release.

    Guarantee:
        Costs nothing, and gives nothing away: a finding is about data sets that the auditor made up, a history about
        what was released. What attacks on people's rows found depends on those rows without noise, and is refused.
    Assumes:
        No data set of a finding is of people.

    >>> import tempfile
    >>> import defocus as dp
    >>> from defocus.audit import attack
    >>> home = tempfile.TemporaryDirectory()
    >>> with dp.Ledger.open(f"{home.name}/a", budget=dp.Budget(1), unit=dp.rows(), dataset="visits") as book:
    ...     receipt = keep(attack("laplace", trials=1000), ledger=book, request="audit of May")
    ...     bundle = book.bundle("audit of May", key=f"{home.name}/key")
    >>> bundle.verify().ok, bundle.verify().facts["value"]["violation"]
    (True, False)
    >>> home.cleanup()
    """
    if not isinstance(found, Finding | History):
        raise InvalidParameterError(
            f"A {type(found).__name__} may tell about people's rows without noise, and records are shown to others.",
            fix="keep findings and histories; report() writes a page for whoever holds the rows.",
        )
    words = f"audit: {found.verdict}" if isinstance(found, Finding) else "audit of all releases"
    receipt = charge(NOTHING, ledger=ledger, purpose="audit", question=words, who=who, request=request)
    ledger.record(receipt, found.to_json(), description=words, keep=True)
    return receipt
