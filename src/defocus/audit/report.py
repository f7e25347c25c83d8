"""What audits found as one page, and as a record in a ledger, which is signed with its bundle."""

from pathlib import Path
from typing import Any, Protocol

from defocus.answers import export
from defocus.answers.page import document
from defocus.answers.plots import DARK, TEAL, blank
from defocus.audit.findings import Finding
from defocus.audit.history import History
from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger, Receipt
from defocus.privacy.events import NOTHING
from defocus.privacy.one_run import OneRun
from defocus.release.charge import charge

__all__ = ["Found", "keep", "picture", "report"]

_READING = (
    "A violation is wrong with probability at most one minus the confidence. Where none was found nothing is proved:"
    " what is said is what would have been seen."
)


class Found(Protocol):
    """What an audit found: a finding, a bound of one run, an attack on membership or secrets, or a history."""

    def to_json(self) -> dict[str, Any]:
        """All of it with JSON types only."""
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
    parts = [f"<h2>{type(each).__name__}</h2>{each._repr_html_()}{picture(each).tag()}" for each in found]
    export.write_bytes(path, document(title, f"<p>{_READING}</p>{''.join(parts)}").encode("utf-8", "replace"))
    return Path(path)


def picture(found: Found) -> Any:
    """Its own plot; of one run the loss that was shown, beside what was claimed."""
    if not isinstance(found, OneRun):
        plotted: Any = found
        return plotted.plot()
    figure = blank(6.5, 1.8)
    axes = figure.add_subplot()
    axes.barh(["shown, at least"], [found.epsilon_lower], color=TEAL, height=0.5)
    if found.claimed is not None:
        axes.axvline(found.claimed, color=DARK, linestyle=":", label=f"claimed, {found.claimed:.4g}")
        axes.legend(fontsize=8)
    axes.set(
        xlabel=f"epsilon at delta {found.delta:.3g}", title=f"{found.verdict}: epsilon >= {found.epsilon_lower:.4g}"
    )
    axes.set_xlim(0, 1.1 * max(found.epsilon_lower, found.claimed or 0.0) or 1)
    figure.alt = str(found)
    return figure


def keep(
    found: Finding | OneRun | History,
    *,
    ledger: Ledger,
    request: str,
    about: Receipt | None = None,
    who: str | None = None,
) -> Receipt:
    """Write what an audit found into a ledger, under a name; :meth:`.Ledger.bundle` signs it like any release.

    Args:
        found: what was found of a mechanism, in one run with canaries, or in a ledger's history.
        ledger: where to write it.
        request: the name of the record.
        about: the receipt of the release that was audited, a training run's say: the record names it and its hash.
        who: by whom; the account's name by default.

    Guarantee:
        Costs nothing, and gives nothing away: a finding is about data sets that the auditor made up, a bound of one run
        about what was released and canaries that are made up, a history about what was released. What attacks on
        people's rows found depends on those rows without noise, and is refused.
    Assumes:
        No data set of a finding and no canary is of people.

    >>> from defocus import examples
    >>> from defocus.audit import attack
    >>> home = examples.folder()
    >>> with examples.ledger() as book:
    ...     receipt = keep(attack("laplace", trials=1000), ledger=book, request="audit of May")
    ...     bundle = book.bundle("audit of May", key=f"{home}/key")
    >>> bundle.verify().ok, bundle.verify().facts["value"]["violation"]
    (True, False)
    """
    if not isinstance(found, Finding | OneRun | History):
        raise InvalidParameterError(
            f"A {type(found).__name__} may tell about people's rows without noise, and records are shown to others.",
            fix="keep findings, bounds of one run and histories; report() writes a page for whoever holds the rows.",
        )
    told = found.to_json()
    words = "audit of all releases" if isinstance(found, History) else f"audit: {found.verdict}"
    if about is not None:
        if all(entry.hash != about.hash for entry in ledger.entries()):
            raise InvalidParameterError(
                f"Receipt {about.sequence} was not given by this ledger.",
                fix="keep what was found in the ledger that the release was charged to.",
            )
        words += f", of entry {about.sequence}"
        told |= {"about": {"entry": about.sequence, "hash": about.hash}}
    receipt = charge(NOTHING, ledger=ledger, purpose="audit", question=words, who=who, request=request)
    ledger.record(receipt, told, description=words, keep=True)
    return receipt
