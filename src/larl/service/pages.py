"""The page: a few files that are sent as they are."""

from pathlib import Path

from fastapi import APIRouter, Response

FOLDER = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
router = APIRouter(include_in_schema=False)


def _send(path: str, file: Path) -> None:
    """Send a file, which is read once, at a path."""
    content, kind = file.read_bytes(), TYPES[file.suffix]

    @router.api_route(path, methods=["GET", "HEAD"])
    async def send() -> Response:
        return Response(content, media_type=kind)


_send("/", FOLDER / "index.html")
for each in sorted(FOLDER.iterdir()):
    if each.name != "index.html":
        _send(f"/{each.name}", each)
