"""``defocus verify``, ``witness``, ``ledger head`` and ``ledger bundle``: releases that prove themselves."""

from pathlib import Path

from defocus.answers.export import write_bytes
from defocus.cli.terminal import console, plain, to_json
from defocus.errors import InvalidParameterError
from defocus.ledger import Bundle, Head, Ledger, SigningKey
from defocus.ledger import witness as signed_by_witness
from defocus.ledger.entries import canonical

__all__ = ["bundle", "head", "verify", "witness"]


def bundle(where: str, request: str, *, key: Path, out: Path) -> None:
    """Write the answer that was kept for a request to a signed file."""
    with Ledger.open(where, read_only=True) as ledger:
        made = ledger.bundle(request, key=key)
    made.save(out)
    console().print(plain(f"{out}, signed by {made.key}"), soft_wrap=True)


def head(where: str, *, key: Path, since: Path | None, out: Path | None) -> None:
    """Print or write a signed head of a ledger, with a proof since an earlier one."""
    earlier = None if since is None else _read(since)
    with Ledger.open(where, read_only=True) as ledger:
        _shown(ledger.head(key, since=earlier), out)


def witness(file: Path, *, key: Path, memory: Path, out: Path | None) -> None:
    """Sign the head of somebody else's ledger, if it follows from the last one that was signed."""
    _shown(signed_by_witness(_read(file), SigningKey.open(key), memory), out)


def verify(file: Path, *, key: str | None, newer: Path | None, as_json: bool, **exports: Path | None) -> bool:
    """Check a bundle, print what it shows, and say whether nothing is wrong; what is true is exported if wanted."""
    found = Bundle.load(file)
    evidence = found.verify(key=key, newer=None if newer is None else _read(newer))
    wanted = {name: path for name, path in exports.items() if path is not None}
    if wanted and evidence.ok:
        _exported(found, **wanted)
    if as_json:
        to_json(evidence.to_dict())
        return evidence.ok
    screen = console()
    for line in str(evidence).split("\n"):
        screen.print(plain(line), style="red" if line.startswith("  problem") else None, soft_wrap=True)
    if evidence.ok and key is None:
        screen.print("note: whose key it is, the file cannot say; compare it with one that you know: --key")
    return evidence.ok


def _exported(
    found: Bundle, *, registry: Path | None = None, nist: Path | None = None, report: Path | None = None
) -> None:
    from defocus import publication  # noqa: PLC0415  # slow to load

    if registry is not None:
        write_bytes(registry, publication.registry_yaml(publication.registry_record(found)).encode())
    if nist is not None:
        write_bytes(nist, publication.evaluation_page(found).encode("utf-8", "replace"))
    if report is not None and report.suffix.lower() == ".pdf":
        publication.pdf_report(found, report)
    elif report is not None:
        write_bytes(report, publication.release_report(found).encode("utf-8", "replace"))


def _read(file: Path) -> Head:
    try:
        return Head.read(file.read_bytes())
    except OSError as error:
        raise InvalidParameterError(
            f"The head {file} cannot be read: {error.strerror}.", fix="name a file that defocus ledger head wrote."
        ) from None


def _shown(made: Head, out: Path | None) -> None:
    text = canonical(made.to_dict())
    if out is None:
        console().print(plain(text), soft_wrap=True)
    else:
        out.write_text(text, encoding="ascii")
