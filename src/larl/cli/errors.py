"""Errors as one line on standard error and an exit code.

Exit codes: 0 success; 1 a file or storage cannot be used, or there is not enough memory; 2 invalid usage or value;
3 some blocks of a study failed (the message names them; the others are complete), or a replay or rehearsal found a
difference; 130 interrupted.
"""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from larl._core.validation import InvalidValue


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command: print a user error, an I/O error or an interrupt as one line, and exit with its code."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except InvalidValue as error:
            code, line = 2, f"error: {error}"
        except OSError as error:
            code, line = 1, f"error: {error}"
        except MemoryError as error:
            from larl.simulation.memory import memory_error

            code, line = 1, f"error: {memory_error(error)}"
        except RuntimeError as error:
            from larl.simulation.executors import BlocksFailed

            if not isinstance(error, BlocksFailed):
                raise
            code, line = 3, f"error: {error}"
        except KeyboardInterrupt:
            code, line = 130, "interrupted; no partial files were written"
        else:
            return
        print(line, file=sys.stderr)
        raise typer.Exit(code)

    return run
