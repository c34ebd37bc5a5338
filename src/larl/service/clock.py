"""Times in UTC with microseconds, as text that sorts by time."""

from datetime import UTC, datetime


def now() -> str:
    """Return the current time."""
    return stamp(datetime.now(UTC))


def stamp(time: datetime) -> str:
    """Return a time that has an offset from UTC."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")[: -len("+00:00")] + "Z"


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds from one time to another."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
