"""``defocus verify``, ``witness``, ``ledger head`` and ``ledger bundle``: releases that prove themselves."""

from pathlib import Path

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


def verify(file: Path, *, key: str | None, newer: Path | None, as_json: bool) -> bool:
    """Check a bundle, print what it shows, and say whether nothing is wrong."""
    evidence = Bundle.load(file).verify(key=key, newer=None if newer is None else _read(newer))
    if as_json:
        to_json(evidence.to_dict())
        return evidence.ok
    screen = console()
    for line in str(evidence).split("\n"):
        screen.print(plain(line), style="red" if line.startswith("  problem") else None, soft_wrap=True)
    if evidence.ok and key is None:
        screen.print("note: whose key it is, the file cannot say; compare it with one that you know: --key")
    return evidence.ok


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
