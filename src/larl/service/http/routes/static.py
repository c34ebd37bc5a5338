"""The files of the page."""

from pathlib import Path

from fastapi import APIRouter, Request, Response

FOLDER = Path(__file__).parents[2] / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
router = APIRouter(include_in_schema=False)


def _serve(file: Path) -> None:
    """Add the route of a file, which is read once."""
    content, kind = file.read_bytes(), TYPES[file.suffix]

    path = "/" if file.name == "index.html" else f"/{file.name}"

    @router.api_route(path, methods=["GET", "HEAD"])
    async def send(request: Request) -> Response:
        request.scope["larl.log"]["route"] = path
        return Response(content, media_type=kind)


for each in sorted(FOLDER.iterdir()):
    _serve(each)
