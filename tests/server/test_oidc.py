"""Sign-in by a provider: a small one of our own, and every lie that it or a browser could tell."""

import base64
import hashlib
import hmac
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from tests.server.making import WORDS, Served, serving

from defocus.errors import InvalidParameterError, SignInError
from defocus.server.oidc import Provider, SignIn
from defocus.server.operations import Settings
from defocus.server.requests import Desk
from defocus.server.roles import Role

RSA, OTHER_RSA = (rsa.generate_private_key(65537, 2048) for _ in range(2))
SHARED = "between server and provider"
EC = ec.generate_private_key(ec.SECP256R1())


def b64(given: bytes) -> str:
    return base64.urlsafe_b64encode(given).rstrip(b"=").decode()


def number(value: int) -> str:
    return b64(value.to_bytes((value.bit_length() + 7) // 8))


@dataclass
class Issuer:
    """A provider whose tokens are true, but for what a test changes."""

    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    algorithm: Any = "RS256"
    key: Any = RSA
    header: dict[str, Any] = field(default_factory=dict)
    use: str = "sig"
    challenge: str = ""
    nonce: str = ""

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
        }

    def keys(self) -> dict[str, Any]:
        numbers, point = RSA.public_key().public_numbers(), EC.public_key().public_numbers()
        return {
            "keys": [
                {"kty": "RSA", "kid": "RS256", "use": self.use, "n": number(numbers.n), "e": number(numbers.e)},
                {"kty": "EC", "kid": "ES256", "crv": "P-256", "x": number(point.x), "y": number(point.y)},
            ]
        }

    def token(self, form: dict[str, str]) -> dict[str, Any]:
        proof = b64(hashlib.sha256(form["code_verifier"].encode()).digest())
        if form["code"] != "the-code" or form["client_secret"] != SHARED or proof != self.challenge:
            return {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.url, "aud": "defocus", "exp": now + 60, "iat": now, "nonce": self.nonce, "sub": "1"}
        claims |= {"email": "ana@hospital.example", "email_verified": True, **self.claims}
        kid = "ES256" if self.algorithm == "ES256" else "RS256"
        head = b64(json.dumps({"alg": self.algorithm, "kid": kid, **self.header}).encode())
        text = f"{head}.{b64(json.dumps({k: v for k, v in claims.items() if v is not None}).encode())}"
        return {"id_token": f"{text}.{b64(self.signature(text.encode()))}"}

    def signature(self, text: bytes) -> bytes:
        if self.algorithm == "ES256":
            return b"".join(half.to_bytes(32) for half in decode_dss_signature(EC.sign(text, ec.ECDSA(SHA256()))))
        if isinstance(self.key, str):  # a key that everybody has, as if it were a secret that two share
            form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
            secret = SHARED.encode() if self.key == SHARED else RSA.public_key().public_bytes(*form)
            return hmac.digest(secret, text, "sha256")
        return b"" if str(self.algorithm).lower() == "none" else self.key.sign(text, padding.PKCS1v15(), SHA256())


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    made = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.say(made.keys() if self.path == "/keys" else made.discovery())

        def do_POST(self) -> None:
            form = urllib.parse.parse_qsl(self.rfile.read(int(self.headers["content-length"])).decode())
            self.say(made.token(dict(form)))

        def say(self, said: dict[str, Any]) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


def provider(issuer: Issuer, home: Path) -> Provider:
    oidc = {"issuer": issuer.url, "client_id": "defocus", "client_secret": SHARED}
    return Provider.of(Settings(home=home, oidc=oidc))


def begun(issuer: Issuer, home: Path) -> tuple[Provider, SignIn]:
    """A sign-in as the browser brings it to the provider."""
    found, signing = provider(issuer, home), SignIn.new()
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(found.address(signing)).query))
    assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
    assert signing.verifier not in found.address(signing)
    issuer.challenge, issuer.nonce = query["code_challenge"], query["nonce"]
    return found, signing


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_who_the_provider_vouches_for_is_named(issuer: Issuer, tmp_path: Path, algorithm: str) -> None:
    issuer.algorithm = algorithm
    found, signing = begun(issuer, tmp_path)
    assert found.name(signing, signing.state, "the-code") == "ana@hospital.example"
    issuer.claims = {"email_verified": False}
    assert found.name(signing, signing.state, "the-code") == "1"


@pytest.mark.parametrize(
    "lie",
    [
        {"claims": {"iss": "https://evil.example"}},
        {"claims": {"aud": "another server"}},
        {"claims": {"aud": ["defocus", "other"], "azp": "other"}},
        {"claims": {"exp": 1}},
        {"claims": {"exp": None}},
        {"claims": {"iat": 4_000_000_000}},
        {"claims": {"nonce": "of another sign-in"}},
        {"claims": {"nonce": None}},
        {"claims": {"sub": None, "email_verified": False}},
        {"claims": {"aud": 3}},
        {"claims": {"aud": ["defocus", "other"]}},
        {"claims": {"aud": "defocus other"}},
        {"claims": {"exp": 10**400}},
        {"claims": {"exp": float("nan")}},
        {"claims": {"nonce": ["a list"]}},
        {"key": OTHER_RSA},
        {"algorithm": "none"},
        {"algorithm": "HS256"},
        {"algorithm": "HS256", "key": "the provider's public key"},
        {"algorithm": "HS256", "key": SHARED},
        {"algorithm": "NONE"},
        {"algorithm": ["RS256"]},
        {"header": {"kid": "ES256"}},
        {"header": {"kid": None}},
        {"key": OTHER_RSA, "header": {"jwk": {"kty": "RSA"}, "jku": "https://evil.example/keys"}},
        {"use": "enc"},
        {"challenge": "of another browser"},
    ],
)
def test_no_lie_is_believed(issuer: Issuer, tmp_path: Path, lie: dict[str, Any]) -> None:
    found, signing = begun(issuer, tmp_path)
    for name, value in lie.items():
        setattr(issuer, name, value)
    with pytest.raises(SignInError, match="The sign-in elsewhere failed"):
        found.name(signing, signing.state, "the-code")


def test_a_sign_in_that_this_browser_did_not_begin_is_refused(issuer: Issuer, tmp_path: Path) -> None:
    found, signing = begun(issuer, tmp_path)
    with pytest.raises(SignInError, match="answers another sign-in"):
        found.name(signing, "another state", "the-code")
    for cookie in (None, "", "a.b", "a..c", "a.b.c.d"):
        with pytest.raises(SignInError, match="not begun in this browser"):
            SignIn.read(cookie)
    assert SignIn.read(signing.cookie()) == signing


def test_a_provider_is_reached_by_https_and_calls_itself_as_it_is_called(issuer: Issuer, tmp_path: Path) -> None:
    for oidc, error in (
        ({}, InvalidParameterError),
        ({"issuer": "http://provider.example", "client_id": "x"}, SignInError),
        ({"issuer": f"{issuer.url}/realm", "client_id": "x"}, SignInError),
        ({"issuer": "http://127.0.0.1:9", "client_id": "x"}, SignInError),
    ):
        with pytest.raises(error):
            Provider.of(Settings(home=tmp_path, oidc=oidc))


def test_somebody_who_was_invited_signs_in_and_nobody_else(issuer: Issuer, tmp_path: Path) -> None:
    oidc = {"issuer": issuer.url, "client_id": "defocus", "client_secret": SHARED}
    with serving(tmp_path, oidc=oidc) as served, httpx.Client(base_url=served.url) as browser:
        assert signed_in(served, issuer, browser).status_code == 401
        served.desk.people.invite(served.people[Role.STEWARD], "auditor", "ana@hospital.example")
        assert signed_in(served, issuer, browser).status_code == 303
        assert browser.get("/api/v1/me").json()["role"] == "auditor"
        replayed = browser.get("/oidc/callback?state=x&code=the-code")
        assert replayed.status_code == 401


def test_who_is_called_owner_elsewhere_is_not_the_owner_here(issuer: Issuer, tmp_path: Path) -> None:
    oidc = {"issuer": issuer.url, "client_id": "defocus", "client_secret": SHARED}
    issuer.claims = {"sub": "owner", "email_verified": False}
    desk = Desk(Settings(home=tmp_path))
    desk.people.accept(str(desk.people.first_link()), WORDS)
    desk.close()
    with serving(tmp_path, oidc=oidc) as served, httpx.Client(base_url=served.url) as browser:
        assert signed_in(served, issuer, browser).status_code == 401
        assert browser.get("/api/v1/me").status_code == 401


def signed_in(served: Served, issuer: Issuer, browser: httpx.Client) -> httpx.Response:
    assert served.url
    sent = browser.get("/oidc")
    assert "httponly" in sent.headers["set-cookie"].lower()
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(sent.headers["location"]).query))
    issuer.challenge, issuer.nonce = query["code_challenge"], query["nonce"]
    return browser.get("/oidc/callback", params={"state": query["state"], "code": "the-code"})
