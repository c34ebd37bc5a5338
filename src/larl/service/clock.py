"""Times in UTC with microseconds, as text that sorts by time."""

from datetime import UTC, datetime


def now() -> str:
    """Return the current time."""
    return _written(datetime.now(UTC))


def stamp(time: datetime) -> str:
    """Return a time that has an offset from UTC."""
    return _written(time.astimezone(UTC))


def _written(time: datetime) -> str:
    return f"{time.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds from one time to another."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
