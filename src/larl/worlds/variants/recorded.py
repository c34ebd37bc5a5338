"""A world that plays back recorded rewards of all arms."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from larl._core.compile import implement, kernel
from larl._core.random import GOLDEN, START, WORLD, bits_to_index, normal_pair, random_bits, stream
from larl._core.states import share_fields
from larl._core.validation import (
    InvalidValue,
    check_fields,
    checked,
    integer,
    known_fields,
    mapping,
    number,
    optional,
    required,
    spec,
)
from larl.worlds.base import World
from larl.worlds.kernels import Floats, advance, begin, step_regret
from larl.worlds.variants.recorded_table import check_unchanged, column_names, read_rewards

Ints = NDArray[np.int64]


class RecordedState(NamedTuple):
    """A `Recorded` world inside a kernel."""

    means: Floats  # (arms,) the rewards of this row; nan if missing
    sd: Floats  # (arms,)
    table: Floats  # (rows, arms); shared by all trials
    starts: Ints  # first row of each trial; empty if it is drawn. Shared by all trials
    first: Ints  # (1,) first row of this trial, or of this block
    row: Ints  # (1,) current row; −1 after the window
    window: int
    block: int  # rows of a block; 0 without bootstrap


share_fields(RecordedState, ("table", "starts"))


def recorded_begin(latent: RecordedState, seed: int, trial: int) -> None:
    """Choose the first row of the trial."""
    if latent.starts.size > 0:
        latent.first[0] = latent.starts[trial % latent.starts.size]
    else:
        choices = latent.table.shape[0] - latent.window + 1
        latent.first[0] = bits_to_index(random_bits(stream(seed, trial, START), 0), choices)


def recorded_advance(latent: RecordedState, key: np.uint64, t: int) -> float:
    """Set the means to the row of step t; return standard normal noise."""
    rows = latent.table.shape[0]
    if t >= latent.window:
        latent.row[0] = -1
    elif latent.block > 0:
        if t % latent.block == 0:
            latent.first[0] = bits_to_index(random_bits(key ^ GOLDEN, t // latent.block), rows)
        latent.row[0] = (latent.first[0] + t % latent.block) % rows
    else:
        latent.row[0] = latent.first[0] + t
    row = latent.row[0]
    for arm in range(latent.means.size):
        latent.means[arm] = latent.table[row, arm] if row >= 0 else math.nan
    _, noise = normal_pair(key, t)
    return noise


def recorded_regret(latent: RecordedState, arm: int) -> float:
    """Return the largest recorded reward of this row minus that of the arm; 0 if that is missing."""
    best = latent.means[arm]
    if math.isnan(best):
        return 0.0
    for other in range(latent.means.size):
        if latent.means[other] > best:  # False if it is missing
            best = latent.means[other]
    return best - latent.means[arm]


implement(begin, RecordedState, recorded_begin)
implement(advance, RecordedState, recorded_advance)
implement(step_regret, RecordedState, recorded_regret)


@kernel
def trace_rows(latent: RecordedState, seed: int, trial: int, path: Ints) -> None:
    """Write the rows of the table of steps 0, 1, … of one trial into `path`."""
    begin(latent, seed, trial)
    key = stream(seed, trial, WORLD)
    for t in range(path.size):
        advance(latent, key, t)
        path[t] = latent.row[0]


@spec
class Recorded(World):
    """A bandit that plays back a table of recorded rewards, one row for each time and one column for each arm.

    A trial is a window of consecutive rows; the reward of an arm at step t is the cell of its column. A cell may be
    missing: a policy that plays it gets no reward at this step. Regret is measured against the largest recorded reward
    of the row, the best arm in hindsight at every step; the regret of a missing cell is 0. `Result.recorded_summary`
    reports mean rewards, and where they lie between a random arm and the best arm at every step.

    Parameters
    ----------
    table : path, data frame, DataArray, array or rows of numbers
        The rewards, time × arms: a CSV (also gzipped) or Parquet file, a table of pandas, polars, pyarrow or another
        library that narwhals supports, a two-dimensional xarray.DataArray or array. True and false are 1 and 0; nan,
        None and empty cells are missing.
    window : int, >= 1
        Rows of a trial, the longest horizon of a comparison; at most the rows of the table.
    columns : sequence of str, optional
        The columns that are arms; by default all columns of numbers or booleans. For an array, the names of its
        columns. The names of the columns are the names of the arms.
    starts : "random", "disjoint" or sequence of int, default "random"
        First row of each trial. ``"random"``: drawn by seed, each possible row equally likely; windows may overlap.
        ``"disjoint"``: 0, window, 2·window, …. A sequence: trial i starts at ``starts[i % len(starts)]``. More trials
        than starts repeat the same windows.
    noise_sd : float, >= 0, default 0.0
        Standard deviation of normal noise that is added to each reward, in units of the reward.
    block : int, >= 1, optional
        If given, a trial is a bootstrap sample: blocks of this many consecutive rows, each from a random row. A block
        that passes the last row continues with the first (circular), so every row is equally likely.

    Raises
    ------
    InvalidValue
        If the table cannot be read or has fewer than two arms, or a value is not accepted.

    Examples
    --------
    >>> import larl
    >>> rows = [[1, 0], [0, 2], [3, None], [1, 3], [2, 1], [0, 1]]
    >>> world = larl.worlds.Recorded(rows, window=3, columns=("tea", "coffee"), starts="disjoint")
    >>> world
    Recorded(table=<6 rows × 2 arms (tea, coffee)>, window=3, starts='disjoint', noise_sd=0.0, block=None)
    >>> simulator = larl.Simulator(world, seed=0, trial=1)
    >>> simulator.z, simulator.means.tolist()
    (3, [1.0, 3.0])
    """

    table: Any
    window: int = required(integer(1))
    columns: Any = field(default=None, repr=False)  # the table's repr has the names
    starts: Any = "random"
    noise_sd: float = checked(number(0.0), 0.0)
    block: int | None = checked(optional(integer(1)), None)
    k = 0

    def __post_init__(self) -> None:
        check_fields(self)
        table = read_rewards(self.table, column_names(self.columns))
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "columns", table.names)
        for name in ("window", "block"):
            if (getattr(self, name) or 0) > table.rows:
                accepted = f"at most {table.rows:,}, the rows of the table"
                raise InvalidValue("Recorded", name, getattr(self, name), accepted)
        object.__setattr__(self, "starts", self._checked_starts())

    def _checked_starts(self) -> str | tuple[int, ...]:
        """Return `starts` with whole numbers as a tuple; raise InvalidValue if they are not accepted."""
        last, given = self.table.rows - self.window, self.starts
        is_list = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | set)
        if not is_list and not (isinstance(given, str) and given in ("random", "disjoint")):
            accepted = f"'random', 'disjoint', or one or more whole numbers from 0 to {last}"
            raise InvalidValue("Recorded", "starts", given, accepted)
        if self.block is not None and not (isinstance(given, str) and given == "random"):
            accepted = "'random', because the blocks of a bootstrap sample start at random"
            raise InvalidValue("Recorded", "starts", given, accepted)
        if isinstance(given, str):
            return given
        starts = tuple(integer(0, last)("Recorded", f"starts[{i}]", start) for i, start in enumerate(given))
        if not starts:
            raise InvalidValue("Recorded", "starts", starts, f"one or more whole numbers from 0 to {last}")
        return starts

    @property
    def arms(self) -> int:  # type: ignore[override]
        """Number of arms."""
        return len(self.table.names)

    @property
    def has_missing(self) -> bool:  # type: ignore[override]
        """Whether a cell of the table is missing."""
        return bool(self.table.has_missing)

    @property
    def max_horizon(self) -> int:  # type: ignore[override]
        """Steps of the longest trial, the window."""
        return self.window

    def latent(self) -> RecordedState:
        """Return the State of the world before a trial: its table and arrays, for kernels."""
        given = () if isinstance(self.starts, str) else self.starts
        if isinstance(self.starts, str) and self.starts == "disjoint":
            given = range(0, self.table.rows - self.window + 1, self.window)
        return RecordedState(
            means=np.zeros(self.arms),
            sd=np.full(self.arms, self.noise_sd),
            table=self.table.values,
            starts=np.array(given, dtype=np.int64),
            first=np.zeros(1, dtype=np.int64),
            row=np.zeros(1, dtype=np.int64),
            window=self.window,
            block=self.block or 0,
        )

    def state_of(self, latent: Any) -> int:
        """Return the row of the table, from 0; −1 after the window."""
        return int(latent.row[0])

    def path(self, horizon: int, seed: int = 0, trial: int = 0) -> Ints:
        """Return the rows of the table in steps 0 … horizon−1 of one trial, those of `compare`."""
        self.check_horizon("path", horizon := integer(1)("path", "horizon", horizon))
        seed, trial = (integer(0, 2**63 - 1)("path", *each) for each in (("seed", seed), ("trial", trial)))
        rows = np.empty(horizon, dtype=np.int64)
        trace_rows(self.latent(), seed, trial, rows)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return the world as JSON types: the table's path and checksum, or its rows. `from_dict` reads them."""
        return self._settings() | {"table": self.table.to_json()}

    def digest_fields(self) -> dict[str, Any]:
        """Return what identifies the world in a store: the checksum of the table, whatever its source."""
        return self._settings()

    def _settings(self) -> dict[str, Any]:
        """Return all fields but the table, and its checksum, as JSON types."""
        return {
            "world": "Recorded",
            "checksum": self.table.checksum,
            "window": self.window,
            "columns": list(self.columns),
            "starts": self.starts if isinstance(self.starts, str) else list(self.starts),
            "noise_sd": self.noise_sd,
            "block": self.block,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], owner: str = "Recorded") -> Self:
        """Return the world that `to_dict` wrote, if its table is unchanged. ``path`` is another name for ``table``."""
        given = {key: value for key, value in mapping(owner, "fields", values).items() if key != "world"}
        checksum = given.pop("checksum", None)
        if "path" in given and "table" not in given:
            given["table"] = given.pop("path")
        world = cls(**known_fields(cls, given, owner))
        if checksum is not None:
            check_unchanged(world.table, checksum)
        return world
