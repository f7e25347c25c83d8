r"""Who takes part in a federation: names, addresses and certificates, in a file that all of them have.

``defocus site init`` makes a key and a certificate of it. Certificates are collected in one folder, beside
``federation.toml``, and every site and the coordinator gets that folder. Nobody else is listened to: TLS accepts
these certificates only, byte by byte, and the same keys sign what sites say in a secure sum.
"""

import datetime as dt
import hashlib
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from defocus.errors import InvalidParameterError, Number
from defocus.federated.identity import Identity
from defocus.federated.sum_plan import counted_shares, too_few
from defocus.tables.dataset_file import Section, parse

__all__ = [
    "Member",
    "Membership",
    "SiteSettings",
    "check_name",
    "identity_at",
    "make_identity",
    "read_membership",
    "read_site",
]

_YEARS = 10
_PATIENCE = 60


@final
@dataclass(frozen=True)
class Member:
    """One that takes part: its name, where it listens, and its certificate."""

    name: str
    host: str
    port: int
    certificate: Path

    @cached_property
    def der(self) -> bytes:
        """The certificate as it is sent."""
        return self._read.public_bytes(Encoding.DER)

    @cached_property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        key = self._read.public_key()
        if not isinstance(key, Ed25519PublicKey):
            raise _no_certificate(self.certificate)
        return key.public_bytes(Encoding.Raw, PublicFormat.Raw)

    @cached_property
    def _read(self) -> x509.Certificate:
        try:
            return x509.load_pem_x509_certificate(self.certificate.read_bytes())
        except FileNotFoundError:
            raise InvalidParameterError(
                f"There is no certificate {self.certificate.name!r:.80} beside the federation file.",
                fix=f"ask {self.name} for it: defocus site init made it there, or federation init the coordinator's.",
            ) from None
        except (OSError, ValueError):
            raise _no_certificate(self.certificate) from None


def _no_certificate(path: Path) -> InvalidParameterError:
    return InvalidParameterError(
        f"{path.name!r:.80} is no certificate of a site.", fix="put there what defocus site init made for that site."
    )


@final
@dataclass(frozen=True)
class Membership:
    """What a federation file says. All sites and the coordinator must agree on it, but for addresses and patience."""

    name: str
    sites: tuple[Member, ...]
    coordinator: Member
    dropouts: int = 0
    colluding: int = 0
    overlap: int = 1
    patience: float = field(default=_PATIENCE, compare=False)
    """For how many seconds a site is waited for, each time it is to say something."""

    @cached_property
    def digest(self) -> str:
        """By this it is told whether two have the same file."""
        facts = (self.name, self.dropouts, self.colluding, self.overlap, self.coordinator.public.hex())
        keys = tuple((site.name, site.public.hex()) for site in self.sites)
        return hashlib.sha256(repr(("defocus.federation/1", facts, keys)).encode()).hexdigest()

    @property
    def parties(self) -> tuple[bytes, ...]:
        """The public keys of the sites, in order."""
        return tuple(site.public for site in self.sites)

    @property
    def honest(self) -> int:
        """How many shares of the noise are counted on."""
        return counted_shares(len(self.sites), self.dropouts, self.colluding)


def read_membership(path: str | Path) -> Membership:
    """What a federation file says, checked."""
    file = Path(path)
    top = parse(file.read_text("utf-8")).only(
        "name", "dropouts", "colluding", "overlap", "patience", "coordinator", "sites"
    )
    sites = tuple(_member(name, section, file.parent) for name, section in top.sections("sites"))
    coordinator = _member("coordinator", top.section("coordinator"), file.parent, listens=False)
    found = Membership(
        top.word("name") or file.stem,
        sites,
        coordinator,
        top.whole("dropouts") or 0,
        top.whole("colluding") or 0,
        top.whole("overlap") or 1,
        float(top.whole("patience") or _PATIENCE),
    )
    keys = {*found.parties, coordinator.public}
    if len(sites) < 2 or too_few(len(sites), found.dropouts, found.colluding):
        top.refuse(
            "dropouts",
            f"of {len(sites)} sites, {found.dropouts} may drop out and {found.colluding} collude: the rest is too few",
            "let twice the drop-outs and the colluding sites be less than all others, or add sites.",
        )
    if len(keys) <= len(sites):
        top.refuse("sites", "two members have one certificate", "let each make its own: defocus site init.")
    if found.overlap > len(sites):
        top.refuse("overlap", "a person cannot be known at more sites than there are", "write overlap = 1.")
    return found


def _member(name: str, section: Section, home: Path, *, listens: bool = True) -> Member:
    section.only("address", "certificate")
    certificate = section.word("certificate")
    if certificate is None:
        section.refuse("certificate", "there is no certificate", f'write certificate = "{name}.pem".')
    host, port = _address(section, "address") if listens else ("", 0)
    return Member(name, host, port, home / certificate)


def _address(section: Section, key: str) -> tuple[str, int]:
    host, _, port = (section.word(key) or "").rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port[:6]) < 1 << 16:
        section.refuse(key, f"{key} must be a host and a port", f'write {key} = "north.example:8443".')
    return host.strip("[]"), int(port)


@final
@dataclass(frozen=True)
class SiteSettings:
    """What the owner of a site says in its own file: which federation, data, key, and the most that it agrees to."""

    membership: Membership
    number: int
    key: Path
    dataset: Path
    host: str
    port: int
    most_epsilon: Number | None = None
    most_delta: Number | None = None

    @property
    def own(self) -> Member:
        """This site, as the others know it."""
        return self.membership.sites[self.number - 1]


def read_site(path: str | Path) -> SiteSettings:
    """What the file of a site says, checked."""
    file = Path(path)
    top = parse(file.read_text("utf-8")).only(
        "name", "federation", "dataset", "key", "listen", "most_epsilon", "most_delta"
    )
    words = {key: top.word(key) for key in ("name", "federation", "dataset", "key")}
    for key, word in words.items():
        if word is None:
            top.refuse(key, f"there is no {key}", f'write {key} = "…".')
    membership = read_membership(file.parent / str(words["federation"]))
    names = [site.name for site in membership.sites]
    if words["name"] not in names:
        top.refuse("name", "the federation has no site of this name", f"choose among {', '.join(names)}.")
    number = names.index(str(words["name"])) + 1
    own = membership.sites[number - 1]
    host, port = _address(top, "listen") if "listen" in top else (own.host, own.port)
    found = SiteSettings(
        membership,
        number,
        file.parent / str(words["key"]),
        file.parent / str(words["dataset"]),
        host,
        port,
        top.number("most_epsilon"),
        top.number("most_delta"),
    )
    if identity_at(found.key).public != own.public:
        top.refuse("key", "the key does not belong to the certificate in the federation", "use the key of this site.")
    return found


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a site."""
    if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum() or len(name) > 64:
        raise InvalidParameterError(
            f"A site cannot be called {name!r:.80}.", fix="use up to 64 letters, digits, - and _."
        )


def make_identity(name: str, folder: str | Path) -> tuple[Path, Path]:
    """A new key, which only its owner may read, and a certificate of it for all others.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     key, certificate = make_identity("north", home)
    ...     key.name, certificate.name
    ('north.key', 'north.pem')
    """
    home = Path(folder)
    check_name(name)
    if not home.is_dir():
        raise InvalidParameterError(f"There is no folder {str(home)!r:.200}.", fix="make it first.")
    key_file, certificate_file = home / f"{name}.key", home / f"{name}.pem"
    key = Ed25519PrivateKey.generate()
    called = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(called)
        .issuer_name(called)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=365 * _YEARS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, None)
    )
    try:
        opened = os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidParameterError(
            f"There is a key {key_file.name!r:.80} already.", fix="use it, or choose another name or folder."
        ) from None
    with os.fdopen(opened, "wb") as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    certificate_file.write_bytes(made.public_bytes(Encoding.PEM))
    return key_file, certificate_file


def identity_at(path: Path) -> Identity:
    """The key in a file that :func:`make_identity` wrote."""
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidParameterError(f"{path.name!r:.80} is no key of a site.", fix="make one: defocus site init.")
    return Identity.from_bytes(key.private_bytes_raw())
