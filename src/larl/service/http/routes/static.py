"""The files of the page."""

from pathlib import Path

from fastapi import APIRouter, Response

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

    @router.api_route("/" if file.name == "index.html" else f"/{file.name}", methods=["GET", "HEAD"])
    async def send() -> Response:
        return Response(content, media_type=kind)


for each in sorted(FOLDER.iterdir()):
    _serve(each)
