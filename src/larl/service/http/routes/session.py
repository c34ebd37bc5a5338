"""Routes to log in to the page and to log out."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from fastapi.concurrency import run_in_threadpool

from larl.service.core.problems import Problem
from larl.service.http.auth import SESSION, Principal
from larl.service.http.dependencies import COOKIE, CurrentService
from larl.service.http.problem_details import error_responses
from larl.service.schemas.dashboard import Login, SessionInfo

router = APIRouter(prefix="/v1/session", tags=["session"], responses=error_responses())
NO_TOKEN: dict[str, Any] = {"security": []}
PageHeader = Annotated[str | None, Header(alias="X-Larl-Page", description="Other sites cannot send this header.")]


@router.get("", response_model=SessionInfo, openapi_extra=NO_TOKEN)
async def get_session(service: CurrentService, request: Request) -> Any:
    """Return who is logged in; nulls if nobody is."""
    try:
        return _session_info(await service.authenticate(request))
    except Problem as problem:
        if problem.status != 401:
            raise
        return _session_info(None)


@router.post("", response_model=SessionInfo, openapi_extra=NO_TOKEN)
async def log_in(
    body: Login, service: CurrentService, request: Request, response: Response, x_larl_page: PageHeader = None
) -> Any:
    """Log in with a token. The browser gets a cookie that lasts twelve hours."""
    _require_page(x_larl_page)
    await service.logins.take(request.client.host if request.client else "")
    principal = await service.auth.token_principal(body.token.strip())
    if principal is None:
        raise Problem(401, "this token is unknown or revoked", field="token")
    if not principal.may("read", principal.study):
        raise Problem(403, "this token cannot read; accepted: a token with role analyst or admin", field="token")
    if COOKIE in request.cookies:
        await run_in_threadpool(service.auth.log_out, request.cookies[COOKIE])
    value = await run_in_threadpool(service.auth.log_in, principal)
    response.set_cookie(COOKIE, value, max_age=int(SESSION.total_seconds()), **_cookie_options(service))
    return _session_info(principal)


@router.delete("", status_code=204, openapi_extra=NO_TOKEN)
def log_out(service: CurrentService, request: Request, response: Response, x_larl_page: PageHeader = None) -> None:
    """Log out."""
    _require_page(x_larl_page)
    if COOKIE in request.cookies:
        service.auth.log_out(request.cookies[COOKIE])
    response.delete_cookie(COOKIE, **_cookie_options(service))


def _cookie_options(service: CurrentService) -> dict[str, Any]:
    return {"path": "/", "httponly": True, "samesite": "strict", "secure": service.settings.behind_tls}


def _require_page(header: str | None) -> None:
    """Raise 403 without the header that only the page can send: other sites must not log anybody in or out."""
    if header is None:
        detail = "the header X-Larl-Page is missing; accepted: any value (the page sends it, other sites cannot)"
        raise Problem(403, detail, field="X-Larl-Page", accepted="any value")


def _session_info(principal: Principal | None) -> dict[str, str | None]:
    if principal is None:
        return {"token": None, "role": None, "study": None}
    return {"token": principal.id, "role": principal.role, "study": principal.study}
