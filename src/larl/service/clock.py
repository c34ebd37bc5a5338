"""Times: UTC, to the microsecond, as text that sorts."""

from datetime import UTC, datetime


def now() -> str:
    """The time now."""
    return f"{datetime.now(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def stamp(time: datetime) -> str:
    """A time, which must say how far it is from UTC."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def seconds_between(earlier: str, later: str) -> float:
    """Seconds from one time to another."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
