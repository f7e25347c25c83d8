"""The server as one ASGI application: what every request passes through before and after its route."""

import json
import logging
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, final
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy import func, select
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from defocus.errors import (
    BudgetExceededError,
    ConflictError,
    DefocusError,
    ForbiddenError,
    LedgerBusyError,
    LedgerDamagedError,
    LedgerUnavailableError,
    NotFoundError,
    QuestionFailedError,
    RecordsError,
    SignInError,
    TooManyAttemptsError,
)
from defocus.server import api, oidc
from defocus.server.access import COOKIE, doing, has_token
from defocus.server.jobs import Jobs
from defocus.server.operations import Settings
from defocus.server.pages import add_pages
from defocus.server.records import REQUESTS, token
from defocus.server.requests import Desk
from defocus.server.roles import PUBLIC, Action, Person

__all__ = ["HEADERS", "Counts", "Door", "create_app", "log_to_stderr", "problem", "status_of"]

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "x-frame-options": "DENY",
}
"""What every response says. Nothing is loaded from elsewhere and no script stands in a page."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_LARGEST = 1 << 20
_LARGE = "The request is larger than is allowed here."
_LOG = logging.getLogger("defocus.server")
_STATUS: tuple[tuple[type[DefocusError], int], ...] = (
    (SignInError, 401),
    (ForbiddenError, 403),
    (NotFoundError, 404),
    (ConflictError, 409),
    (BudgetExceededError, 409),
    (QuestionFailedError, 409),
    (TooManyAttemptsError, 429),
    (RecordsError, 503),
    (LedgerBusyError, 503),
    (LedgerUnavailableError, 503),
    (LedgerDamagedError, 503),
)
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


def create_app(settings: Settings, *, work: bool = True) -> FastAPI:
    """The server: records and ledgers are opened now, workers start with the application.

    Args:
        settings: everything that is said when a server is started.
        work: whether this process also runs approved requests.

    >>> import tempfile
    >>> from pathlib import Path
    >>> home = tempfile.TemporaryDirectory()
    >>> app = create_app(Settings(home=Path(home.name)))
    >>> app.title, app.state.desk.people.first_link() is not None
    ('Defocus', True)
    >>> app.state.desk.close(); home.cleanup()
    """
    desk = Desk(settings)
    jobs = Jobs(desk)
    object.__setattr__(desk, "wake", jobs.wake)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if work:
            jobs.start()
        yield
        if work:
            jobs.stop()
        desk.close()

    app = FastAPI(
        title="Defocus",
        summary="Private statistics on one ledger: ask, approve, release, verify.",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
    )
    app.state.desk, app.state.jobs, app.state.counts = desk, jobs, Counts()
    app.include_router(api.router)
    add_pages(app)
    app.add_exception_handler(DefocusError, _refused)
    app.add_exception_handler(RequestValidationError, _misread)
    app.add_exception_handler(HTTPException, _unrouted)
    _operations(app)
    app.add_middleware(Door, settings=settings, counts=app.state.counts)
    return app


def problem(status: int, title: str, detail: str, fix: str) -> JSONResponse:
    """A problem-details document (RFC 9457), with how to mend it."""
    said = {"type": "about:blank", "title": title, "status": status, "detail": detail, "fix": fix}
    return JSONResponse(said, status, media_type="application/problem+json")


def status_of(error: DefocusError, person: Person) -> int:
    """The HTTP status of a refusal; who may not do something and has not signed in is asked to."""
    if isinstance(error, ForbiddenError) and not person.signed_in:
        return 401
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 422)


def _refused(request: Request, error: Any) -> Response:
    status = status_of(error, getattr(request.state, "person", PUBLIC))
    title = type(error).__name__.removesuffix("Error")
    page = getattr(request.app.state, "page_of_error", None)
    if page is not None and not request.url.path.startswith("/api/"):
        found: Response = page(request, status, error)
        return found
    return problem(status, title, error.what, error.fix)


def _misread(request: Request, error: Any) -> Response:
    """What is wrong with a body or parameter, without repeating what was sent."""
    said = [f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()[:10]]
    refusal = DefocusError("; ".join(said)[:2000] or "The request is not understood.", fix="correct these fields.")
    return _refused(request, refusal)


def _unrouted(request: Request, error: Any) -> Response:
    words = {404: "There is nothing here.", 405: "This cannot be done here.", 413: _LARGE}
    refusal = NotFoundError(words.get(error.status_code, "The request is not understood."), fix="check what is sent.")
    page = getattr(request.app.state, "page_of_error", None)
    if page is not None and not request.url.path.startswith("/api/"):
        found: Response = page(request, error.status_code, refusal)
        return found
    response = problem(error.status_code, "NotPossible", refusal.what, refusal.fix)
    response.headers.update(error.headers or {})
    return response


def _operations(app: FastAPI) -> None:
    """Health, metrics, sign-in by a provider, and the description of the API."""

    @app.get("/health", include_in_schema=False)
    def health(request: Request, _: Person = doing(Action.READ_REGISTER)) -> dict[str, str]:
        request.app.state.desk.records.about("format")
        return {"status": "ok"}

    @app.get("/metrics", include_in_schema=False)
    def metrics(request: Request, _: Person = doing(Action.SEE_QUEUE)) -> PlainTextResponse:
        desk: Desk = request.app.state.desk
        with desk.records.read() as session:
            states = session.execute(select(REQUESTS.c.state, func.count()).group_by(REQUESTS.c.state)).all()
        lines = request.app.state.counts.lines()
        lines += ["# TYPE defocus_requests gauge"]
        lines += [f'defocus_requests{{state="{state}"}} {number}' for state, number in states]
        return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    @app.get("/oidc", include_in_schema=False)
    def begin(request: Request, _: Person = doing(Action.SIGN_IN)) -> RedirectResponse:
        signing, settings = oidc.SignIn.new(), request.app.state.desk.settings
        response = RedirectResponse(oidc.Provider.of(settings).address(signing), 303)
        kept: dict[str, Any] = {"max_age": 600, "httponly": True, "samesite": "lax", "secure": settings.secure}
        response.set_cookie(oidc.COOKIE, signing.cookie(), path="/oidc", **kept)
        return response

    @app.get("/oidc/callback", include_in_schema=False)
    def come_back(
        request: Request, state: str = "", code: str = "", _: Person = doing(Action.SIGN_IN)
    ) -> RedirectResponse:
        desk: Desk = request.app.state.desk
        signing = oidc.SignIn.read(request.cookies.get(oidc.COOKIE))
        name = oidc.Provider.of(desk.settings).name(signing, state, code)
        response = RedirectResponse("/", 303)
        api.set_session(request, response, desk.people.sign_in_as(name))
        response.delete_cookie(oidc.COOKIE, path="/oidc")
        return response

    @app.get("/api/v1/openapi.json", include_in_schema=False)
    def openapi(request: Request, _: Person = doing(Action.READ_REGISTER)) -> dict[str, Any]:
        return request.app.openapi()  # type: ignore[no-any-return]


@final
class Counts:
    """How many responses there were and how long they took, by route and status."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[tuple[str, str, int]] = Counter()

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one response."""
        with self._lock:
            self._number[method, route, status] += 1
            self._seconds[method, route, status] += seconds  # type: ignore[assignment]

    def lines(self) -> list[str]:
        """The counts as Prometheus reads them."""
        with self._lock:
            number, seconds = dict(self._number), dict(self._seconds)
        made = []
        for name, counted in (("responses_total", number), ("response_seconds_total", seconds)):
            made.append(f"# TYPE defocus_{name} counter")
            for (method, route, status), value in counted.items():
                made.append(f'defocus_{name}{{method="{method}",route="{route}",status="{status}"}} {value:.6g}')
        return made


@final
class Door:
    """What every request passes: its size, whence it comes, what is said of it in the log, and what a failure says.

    A failure that nobody foresaw is told as one, by its place in the code. Its text may hold private values, so it is
    neither sent nor logged.
    """

    def __init__(self, app: Any, settings: Settings, counts: Counts) -> None:
        self._app = app
        self._settings = settings
        self._counts = counts
        self._headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
        if settings.secure:
            self._headers.append((b"strict-transport-security", b"max-age=31536000"))

    async def __call__(self, scope: Any, receive: _Receive, send: _Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, number, status = time.perf_counter(), token(), 0
        request = Request(scope)

        async def sent(message: _Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = [*self._headers, (b"x-request-id", number.encode())]
                if not request.url.path.startswith("/static/"):
                    own.append((b"cache-control", b"no-store"))
                message["headers"] = [*message.get("headers", []), *own]
            await send(message)

        failed = ""
        try:
            refusal = self._stopped(request)
            if refusal is None:
                await self._app(scope, self._counted(request, receive), sent)
            else:
                await refusal(scope, receive, sent)
        except Exception as error:  # noqa: BLE001  # its text may hold private values
            failed = _place(error)
            if not status:
                body = problem(
                    500,
                    "Failure",
                    f"Something failed that nobody foresaw ({number}).",
                    "tell the administrator this number.",
                )
                await body(scope, receive, sent)
        self._log(request, number, status, time.perf_counter() - started, failed)

    def _stopped(self, request: Request) -> Response | None:
        """A refusal of what is too large, or was sent by a page of somebody else.

        That page cannot act with the session of a browser here, nor give it a session of its own.
        """
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._most(request):
            return _large()
        if request.method in _SAFE or has_token(request):
            return None
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        if site is None and origin is None and COOKIE not in request.cookies:
            return None  # no browser sent it
        own = {urlsplit(self._settings.address).netloc, request.headers.get("host", "")}
        if site == "same-origin" or (site is None and origin is not None and urlsplit(origin).netloc in own):
            return None
        return problem(
            403,
            "CrossOrigin",
            "The request has a session, but was not sent by a page of this server.",
            "open the page here; in a program, send a token in place of the cookie: Authorization: Bearer TOKEN.",
        )

    def _most(self, request: Request) -> int:
        path = request.url.path.rstrip("/").split("/")
        upload = request.method in {"PUT", "POST"} and (path[-2:-1] == ["files"] or path[-1] == "consent")
        return self._settings.largest if upload else _LARGEST

    def _counted(self, request: Request, receive: _Receive) -> _Receive:
        left = self._most(request)

        async def counted() -> _Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413)
            return message

        return counted

    def _log(self, request: Request, number: str, status: int, seconds: float, failed: str) -> None:
        """One line for a request: the route and not the address, which may hold the secret of a link."""
        route = getattr(request.scope.get("route"), "path", "unknown")
        person = getattr(request.state, "person", PUBLIC)
        self._counts.add(request.method, route, status, seconds)
        said: dict[str, Any] = {"request": number, "method": request.method, "route": route, "status": status}
        said |= {"ms": round(1000 * seconds, 1), "person": person.id or None}
        if failed:
            said["failed"] = failed
        _LOG.log(logging.ERROR if failed else logging.INFO, json.dumps(said))


def _large() -> Response:
    return problem(413, "TooLarge", _LARGE, "send less at once.")


def _place(error: BaseException) -> str:
    """The kind of a failure and where in the code it happened, without its text."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    where = " < ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(error).__name__} at {where}"


def log_to_stderr() -> None:
    """Write one line of JSON for each request."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.INFO)
