"""The error of a comparison that needs more memory than there is."""

from larl.policies._state_memory import format_bytes

HINT = "fewer trials, or keep='summary', need less"


def memory_error(error: MemoryError | None = None, needed: int = 0) -> MemoryError:
    """Return a MemoryError whose message says what needs less memory."""
    if error is not None and HINT in str(error):
        return error
    reason = f"{error}" if error is not None else f"{format_bytes(needed)} are needed to keep every step"
    return MemoryError(f"not enough memory{f' ({reason})' if reason else ''}; {HINT}")
