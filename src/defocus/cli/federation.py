"""``defocus site`` and ``defocus federation``."""

import re
from pathlib import Path
from typing import Any

from defocus.cli.options import FormatName
from defocus.cli.questions import check_places, deliver, elsewhere, show
from defocus.cli.terminal import console, plain, to_json
from defocus.errors import DefocusError, InvalidParameterError, probability
from defocus.federated import federation, make_identity, serve_site
from defocus.federated.membership import check_name, read_membership

__all__ = ["ask", "budget", "make_federation", "make_site", "preview", "serve"]

_COORDINATOR = "coordinator"


def make_site(name: str, folder: Path) -> None:
    """Write what a site needs, and say what to do with it."""
    key, certificate = make_identity(name, folder)
    _say(f"written: {key}, which stays here, and {certificate}, for all members")
    draft = folder / "site.toml"
    if name != _COORDINATOR and not draft.exists():
        draft.write_text(
            f'name = "{name}"\nfederation = "federation.toml"\ndataset = "defocus.toml"\nkey = "{key.name}"\n'
            '# listen = "0.0.0.0:8443"  # where its address in the federation file is another one\n'
            "# most_epsilon = 1  # what one question may cost at most\n",
            encoding="utf-8",
        )
        _say(f"written: {draft}; serve it with defocus site serve when federation.toml is there")


def serve(config: Path) -> None:
    """Answer until the process is stopped."""
    try:
        serve_site(config)
    except KeyboardInterrupt:
        _say("stopped")


def make_federation(sites: list[str], folder: Path, **facts: int) -> None:
    """Write the file that all members get; certificates that are not there yet are named."""
    file, coordinator = folder / "federation.toml", folder / f"{_COORDINATOR}.pem"
    if file.exists():
        raise InvalidParameterError(f"There is a {file.name} already.", fix="change it, or choose another --folder.")
    lines = [f"{name} = {value}" for name, value in facts.items() if value != (name == "overlap")]
    lines += ["", f"[{_COORDINATOR}]", f'certificate = "{coordinator.name}"']
    missing = []
    for said in sites:
        name, _, address = said.partition("=")
        check_name(name)
        if not re.fullmatch(r"[\w.\[\]:-]+:\d{1,5}", address, re.ASCII):
            raise InvalidParameterError(
                f"{said!r:.80} is not a site and where it listens.", fix="write for example north=10.0.0.1:8443."
            )
        lines += ["", f"[sites.{name}]", f'address = "{address}"', f'certificate = "{name}.pem"']
        missing += [] if (folder / f"{name}.pem").exists() else [f"{name}.pem"]
    if not coordinator.exists():
        make_site(_COORDINATOR, folder)
    file.write_text("\n".join(lines).lstrip() + "\n", encoding="utf-8")
    if missing:
        _say(f"put beside it what defocus site init makes at the sites: {', '.join(missing)}")
    else:
        try:
            read_membership(file)
        except DefocusError:
            file.unlink()
            raise
    _say(f"written: {file}, for all members, with all certificates")


def preview(
    *, members: Path, key: Path | None, without: list[str] | None, explain: bool, as_json: bool, **asked: Any
) -> None:
    """Print what a question would cost and how exact its answer would be. Free."""
    question, price = elsewhere(federation(members, key=key, without=without or ()), **asked)
    show(question.preview(**price), explain=explain, as_json=as_json)


def ask(
    *,
    members: Path,
    key: Path | None,
    without: list[str] | None,
    purpose: str | None,
    who: str | None,
    out: Path | None,
    plot: Path | None,
    confidence: float,
    explain: bool,
    as_json: bool,
    shape: FormatName,
    **asked: Any,
) -> None:
    """Release one answer, print it, and write it where asked."""
    check_places(out, plot)
    level = float(probability("confidence", confidence, zero=False, one=False))
    question, price = elsewhere(federation(members, key=key, without=without or ()), **asked)
    answer = question.release(**price, purpose=purpose, who=who)
    how = {"as_json": as_json or shape is FormatName.JSON, "as_csv": shape is FormatName.CSV and not as_json}
    deliver(answer, out=out, plot=plot, explain=explain, confidence=level, **how)


def budget(members: Path, key: Path | None, *, as_json: bool) -> None:
    """Print what each site has left, or why it does not say so."""
    found = federation(members, key=key).budgets()
    if as_json:
        to_json(found)
        return
    for name, said in found.items():
        _say(f"{name}: {said}")


def _say(text: str) -> None:
    console().print(plain(text), soft_wrap=True)
