"""Times: UTC, to the microsecond, as text that sorts."""

from datetime import UTC, datetime


def now() -> str:
    """The time now."""
    return _written(datetime.now(UTC))


def stamp(time: datetime) -> str:
    """A time, which must say how far it is from UTC."""
    return _written(time.astimezone(UTC))


def _written(time: datetime) -> str:
    return f"{time.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def seconds_between(earlier: str, later: str) -> float:
    """Seconds from one time to another."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
