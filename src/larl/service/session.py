"""Routes by which a person logs in to the page, and out."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from fastapi.concurrency import run_in_threadpool

from larl.service import overview_models as models
from larl.service.access import SESSION, Holder
from larl.service.door import COOKIE, Here, refusals, who
from larl.service.problems import Problem

router = APIRouter(prefix="/v1/session", tags=["session"], responses=refusals())
NO_TOKEN: dict[str, Any] = {"security": []}  # is asked for in a header
FromPage = Annotated[str | None, Header(alias="X-Larl-Page", description="Only the page can send it.")]


@router.get("", response_model=models.Visitor, openapi_extra=NO_TOKEN, operation_id="get_session")
async def visitor(request: Request) -> Any:
    """Who is logged in, if anybody is."""
    try:
        return _shown(await who(request))
    except Problem as problem:
        if problem.status != 401:
            raise
        return _shown(None)


@router.post("", response_model=models.Visitor, openapi_extra=NO_TOKEN, operation_id="log_in")
async def enter(
    body: models.Login, here: Here, request: Request, response: Response, x_larl_page: FromPage = None
) -> Any:
    """Log in with a token; a browser gets a cookie for it, which lasts twelve hours."""
    _from_page(x_larl_page)
    here.logins.take(request.client.host if request.client else "")
    holder = await here.access.holder(body.token.strip())
    if holder is None:
        raise Problem(401, "this token is unknown or revoked", field="token")
    if not holder.may("read", holder.study):
        raise Problem(403, "this token cannot read; accepted: a token with role analyst or admin", field="token")
    if COOKIE in request.cookies:
        await run_in_threadpool(here.access.leave, request.cookies[COOKIE])
    response.set_cookie(
        COOKIE,
        await run_in_threadpool(here.access.enter, holder),
        max_age=int(SESSION.total_seconds()),
        path="/",
        httponly=True,
        samesite="strict",
        secure=here.settings.secure,
    )
    return _shown(holder)


@router.delete("", status_code=204, openapi_extra=NO_TOKEN, operation_id="log_out")
def leave(here: Here, request: Request, response: Response, x_larl_page: FromPage = None) -> None:
    """Log out."""
    _from_page(x_larl_page)
    if COOKIE in request.cookies:
        here.access.leave(request.cookies[COOKIE])
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict", secure=here.settings.secure)


def _from_page(header: str | None) -> None:
    """Other sites cannot send this header: nobody is logged in or out by them."""
    if header is None:
        detail = "the header X-Larl-Page is missing; accepted: any value (the page sends it, other sites cannot)"
        raise Problem(403, detail, field="X-Larl-Page", accepted="any value")


def _shown(holder: Holder | None) -> dict[str, str | None]:
    if holder is None:
        return {"token": None, "role": None, "study": None}
    return {"token": holder.id, "role": holder.role, "study": holder.study}
