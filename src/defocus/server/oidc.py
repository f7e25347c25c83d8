"""Sign-in by an identity provider: OpenID Connect, the authorization code flow with PKCE.

The server sends a browser to the provider with a state, a nonce and a challenge that are tied to that browser by a
cookie. The code that comes back is exchanged for an ID token, whose signature, issuer, audience, nonce and time are
checked. The verified e-mail address, or the subject where there is none, is the name under which a steward invited the
person: a provider lets nobody in whom no steward invited.
"""

import base64
import hashlib
import json
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any, final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from defocus.errors import InvalidParameterError, SignInError
from defocus.server.operations import Settings

__all__ = ["COOKIE", "Provider", "SignIn"]

COOKIE = "defocus_oidc"
_LARGEST, _TIMEOUT, _SKEW = 1 << 20, 10.0, 60
_CALLBACK = "/oidc/callback"


@final
@dataclass(frozen=True, slots=True)
class SignIn:
    """What a browser must bring back: three secrets, kept in a cookie until it does."""

    state: str
    nonce: str
    verifier: str

    @classmethod
    def new(cls) -> "SignIn":
        """Three new secrets."""
        return cls(*(secrets.token_urlsafe(32) for _ in range(3)))

    def cookie(self) -> str:
        """The three as one text."""
        return f"{self.state}.{self.nonce}.{self.verifier}"

    @classmethod
    def read(cls, cookie: str | None) -> "SignIn":
        """The three of a cookie."""
        parts = (cookie or "").split(".")
        if len(parts) != 3 or not all(parts):
            raise _refused("the sign-in was not begun in this browser")
        return cls(*parts)


@final
@dataclass(frozen=True, slots=True)
class Provider:
    """An identity provider, as its discovery document describes it. Made by :meth:`of`."""

    issuer: str
    client: str
    secret: str | None
    callback: str
    authorization: str
    token: str
    keys: str

    @classmethod
    def of(cls, settings: Settings) -> "Provider":
        """The provider of these settings."""
        issuer = settings.oidc.get("issuer", "").rstrip("/")
        if not issuer or not settings.oidc.get("client_id"):
            raise InvalidParameterError(
                "Nobody signs in elsewhere here.", fix="start the server with --oidc issuer=… --oidc client_id=…."
            )
        said = _fetched(f"{issuer}/.well-known/openid-configuration")
        if said.get("issuer", "").rstrip("/") != issuer:
            raise _refused("the provider calls itself otherwise")
        places = [said.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
        if not all(isinstance(place, str) and _safe(place) for place in places):
            raise _refused("the provider does not say where to sign in, by HTTPS")
        client, secret = settings.oidc["client_id"], settings.oidc.get("client_secret")
        return cls(said["issuer"], client, secret, f"{settings.address}{_CALLBACK}", *map(str, places))

    def address(self, signing: SignIn) -> str:
        """Where to send the browser."""
        challenge = _unpadded(hashlib.sha256(signing.verifier.encode()).digest())
        asked = {
            "response_type": "code",
            "client_id": self.client,
            "redirect_uri": self.callback,
            "scope": "openid email",
            "state": signing.state,
            "nonce": signing.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in self.authorization else "?"
        return f"{self.authorization}{joint}{urllib.parse.urlencode(asked)}"

    def name(self, signing: SignIn, state: str, code: str) -> str:
        """The name of who signed in, by the code that the browser brought back."""
        if not secrets.compare_digest(state.encode(), signing.state.encode()):
            raise _refused("it answers another sign-in")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.callback,
            "client_id": self.client,
            "code_verifier": signing.verifier,
            **({} if self.secret is None else {"client_secret": self.secret}),
        }
        said = _fetched(self.token, urllib.parse.urlencode(form).encode())
        claims = self._claims(str(said.get("id_token", "")))
        if not secrets.compare_digest(str(claims.get("nonce", "")).encode(), signing.nonce.encode()):
            raise _refused("the token answers another sign-in")
        found = claims.get("email") if claims.get("email_verified") is True else claims.get("sub")
        if not isinstance(found, str) or not found:
            raise _refused("the token names nobody")
        return found

    def _claims(self, token: str) -> dict[str, Any]:
        """What an ID token claims, if the provider signed it for this server and it holds now."""
        try:
            head, body, signature = token.split(".")
            header, claims = json.loads(_padded(head)), json.loads(_padded(body))
            signed = f"{head}.{body}".encode()
            keys = [key for key in _fetched(self.keys)["keys"] if key.get("kid") == header.get("kid")]
            good = any(_verified(key, header["alg"], signed, _padded(signature)) for key in keys)
            audience = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
            now = time.time()
            fits = claims["iss"] == self.issuer and self.client in audience
            fits = fits and claims.get("azp", self.client if len(audience) == 1 else None) == self.client
            fits = fits and float(claims["exp"]) > now - _SKEW and float(claims["iat"]) < now + _SKEW
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            raise _refused("the token cannot be read") from None
        if not good or not fits:
            raise _refused("the token is not the provider's, not for this server, or not of now")
        return dict(claims)


def _verified(key: dict[str, Any], algorithm: str, signed: bytes, signature: bytes) -> bool:
    """Whether a key signed a text by RS256 or ES256; nothing else is believed, least of all "none"."""
    try:
        if key.get("use", "sig") != "sig":
            return False
        if algorithm == "RS256" and key.get("kty") == "RSA":
            number = rsa.RSAPublicNumbers(_number(key["e"]), _number(key["n"]))
            if number.n.bit_length() < 2048:
                return False
            number.public_key().verify(signature, signed, padding.PKCS1v15(), SHA256())
            return True
        if algorithm == "ES256" and key.get("kty") == "EC" and key.get("crv") == "P-256" and len(signature) == 64:
            point = ec.EllipticCurvePublicNumbers(_number(key["x"]), _number(key["y"]), ec.SECP256R1())
            halves = (int.from_bytes(signature[:32]), int.from_bytes(signature[32:]))
            point.public_key().verify(encode_dss_signature(*halves), signed, ec.ECDSA(SHA256()))
            return True
    except InvalidSignature:
        return False
    return False


def _fetched(place: str, form: bytes | None = None) -> dict[str, Any]:
    if not _safe(place):
        raise _refused("the provider is not reached by HTTPS")
    try:
        with urllib.request.urlopen(urllib.request.Request(place, form), timeout=_TIMEOUT) as response:  # noqa: S310
            said = json.loads(response.read(_LARGEST))
    except (urllib.error.URLError, OSError, ValueError):
        raise _refused("the provider does not answer, or not as one") from None
    if not isinstance(said, dict):
        raise _refused("the provider does not answer as one")
    return said


def _safe(place: str) -> bool:
    found = urllib.parse.urlsplit(place)
    return found.scheme == "https" or (found.scheme == "http" and found.hostname in {"127.0.0.1", "localhost"})


def _number(text: str) -> int:
    return int.from_bytes(_padded(text))


def _padded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _unpadded(given: bytes) -> str:
    return base64.urlsafe_b64encode(given).rstrip(b"=").decode()


def _refused(why: str) -> SignInError:
    return SignInError(f"The sign-in elsewhere failed: {why}.", fix="begin again; tell the administrator if it stays.")
