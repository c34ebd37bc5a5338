"""Files of results: NetCDF in the classic format with 64-bit offsets, which scipy reads and writes.

The attribute `sha256` is a checksum of all variables and the other attributes. Files of larl 0.1 do not have it.
"""

from collections.abc import Hashable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import ScipyDataStore

from larl._core.files import write_atomically
from larl._core.validation import InvalidValue
from larl.simulation.result_checks import check_structure, checksum

FORMAT = "larl result 1"


def write_netcdf(data: xr.Dataset, path: Path) -> Path:
    """Write the dataset of a result; raise InvalidValue if it exceeds the limits of the format."""
    largest = max(variable.nbytes for variable in data.variables.values())
    if largest >= 2**31:
        accepted = "less than 2 GiB, the limit of the file format: use keep='summary' or fewer trials"
        raise InvalidValue("Result.save", "largest variable, bytes", largest, accepted)
    integers = [name for name in data.variables if data[name].dtype == np.int64]
    if any(np.abs(data[name]).max(initial=0) >= 2**31 for name in integers):
        accepted = "horizons and trials below 2³¹, the limit of the file format"
        raise InvalidValue("Result.save", "time or trial", "too large", accepted)
    encoding = {name: {"dtype": np.int32} for name in integers}
    data = data.assign_attrs(format=FORMAT, sha256=checksum(data))
    return write_atomically(path, lambda draft: _write(data, draft, encoding))


def _write(data: xr.Dataset, path: Path, encoding: dict[Hashable, dict[str, Any]]) -> None:
    # As `data.to_netcdf(path, engine="scipy")`, which also asks Dask, if it is installed, for the lock of a cluster:
    # the import of `distributed` takes longer than everything else here.
    with closing(ScipyDataStore(str(path), mode="w", format="NETCDF3_64BIT", lock=False)) as store:
        data.dump_to_store(store, encoding=encoding)


def read_netcdf(path: Path) -> xr.Dataset:
    """Read the dataset of a result; raise InvalidValue if the file is missing, damaged or of another format."""
    accepted = "a complete file that Result.save wrote"
    if not path.is_file():
        raise InvalidValue("load", "path", str(path), f"{accepted}; there is no such file")
    try:
        data = xr.load_dataset(path, engine="scipy")
    except Exception as error:  # a damaged file can make the reader raise anything
        raise InvalidValue("load", "path", str(path), f"{accepted}; this one cannot be read ({error})") from error
    if data.attrs.pop("format", None) != FORMAT:
        raise InvalidValue("load", "path", str(path), f"{accepted} (format {FORMAT!r})")
    integers = {name: data[name].astype(np.int64) for name in data.variables if data[name].dtype == np.int32}
    coords = {name: values for name, values in integers.items() if name in data.coords}
    data = data.assign(integers).assign_coords(coords)
    expected = data.attrs.pop("sha256", None)
    try:
        if expected is not None and checksum(data) != expected:
            raise ValueError("it was edited or damaged: its checksum does not match")
        check_structure(data)
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise InvalidValue("load", "path", str(path), f"{accepted}; this one is not: {error}") from error
    return data
