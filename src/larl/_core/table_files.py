"""Read a table from a CSV or Parquet file, and its cells as numbers."""

import gzip
import io
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from larl._core.validation import InvalidValue

GZIP = b"\x1f\x8b"
BOOLEANS = {"true": 1.0, "false": 0.0}


def read_table_file(owner: str, name: str, path: str | Path) -> pd.DataFrame:
    """Return the table of a CSV file (also gzipped; all cells as text) or of a Parquet file."""
    path = Path(path)
    if not path.is_file():
        raise InvalidValue(owner, name, str(path), "the path of a CSV or Parquet file; this file does not exist")
    with path.open("rb") as file:
        signature = file.read(4)
    if signature == b"PAR1" or path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(owner, name, path)
    content = _decompress(owner, name, path) if signature[:2] == GZIP else path.read_bytes()
    if not content.strip():
        raise InvalidValue(owner, name, str(path), "a CSV file with a header and rows; this file is empty")
    accepted = "a CSV or Parquet file; this file is neither"
    if b"\0" in content[:4096]:
        raise InvalidValue(owner, name, str(path), f"{accepted} (it contains zero bytes)")
    try:
        header = content.split(b"\n", 1)[0].decode("utf-8-sig")
        separator = max(",;\t", key=header.count)
        frame = pd.read_csv(io.BytesIO(content), dtype=str, sep=separator, encoding="utf-8-sig", skipinitialspace=True)
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InvalidValue(owner, name, str(path), f"{accepted} ({str(error).strip()})") from error
    return frame.rename(columns=lambda name: str(name).strip())


def _decompress(owner: str, name: str, path: Path) -> bytes:
    """Return the decompressed content of a gzip file."""
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        accepted = f"a complete gzip file; this file cannot be decompressed ({error})"
        raise InvalidValue(owner, name, str(path), accepted) from error


def _read_parquet(owner: str, name: str, path: Path) -> pd.DataFrame:
    """Return the table of a Parquet file."""
    try:
        return pd.read_parquet(path)
    except ImportError as error:
        accepted = "a CSV file; Parquet needs pyarrow, which is not installed: pip install 'larl[parquet]'"
        raise InvalidValue(owner, name, str(path), accepted) from error
    except Exception as error:  # the exception of a damaged file depends on the reader
        accepted = f"a complete Parquet file; this file cannot be read ({error})"
        raise InvalidValue(owner, name, str(path), accepted) from error


def to_numbers(cells: pd.Series) -> NDArray[np.float64]:
    """Return the cells as numbers; true and false are 1 and 0, other text is nan."""
    if pd.api.types.is_bool_dtype(cells.dtype):
        return cells.to_numpy(dtype=float, na_value=np.nan)
    result = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    is_text = np.isnan(result) & cells.notna().to_numpy()
    if is_text.any():
        text = cells[is_text].astype(str).str.strip().str.lower()
        result = result.copy()
        result[is_text] = text.map(BOOLEANS).to_numpy(dtype=float)
    return result
