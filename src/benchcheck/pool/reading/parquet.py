"""Parquet, a batch of rows at a time, out of an archive too."""

import datetime as dt
import decimal
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchcheck.errors import DamagedFileError
from benchcheck.pool.reading.sources import PARQUET, Origin, blocks
from benchcheck.pool.reading.tables import check_names

__all__ = ["parquet_rows"]

_BATCH = 1_000
"""Parquet rows in memory at a time."""
_BATCH_OF_BYTES = 20
"""The same where a column holds bytes: images, clips."""
_MAX_PARQUET = 1 << 30
"""Bytes of a Parquet file in an archive, which has to be unpacked whole."""


def parquet_rows(origin: Origin) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a file's rows, each with its place: nested columns as lists and dicts, the rest as JSON would have it.

    Raises:
        InputError: two columns have one name.
        DamagedFileError: it is no Parquet file, or breaks; in an archive, it unpacks to over 1 GB.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(_file(origin)) as file:
            check_names(origin, file.schema_arrow.names)
            heavy = any("binary" in str(column.type) for column in file.schema_arrow)
            for batch in file.iter_batches(batch_size=_BATCH_OF_BYTES if heavy else _BATCH):
                for values in batch.to_pylist():
                    number += 1
                    yield f"row {number}", {name: _plain(value) for name, value in values.items()}
    except (pa.ArrowException, OSError, ValueError, OverflowError) as reason:
        what = " ".join(str(reason).split())[:200]
        raise DamagedFileError(
            f"{origin.name}: after row {number}: not readable as Parquet: {what}. Cure: get the file again"
        ) from None


def _file(origin: Origin) -> Path | io.BytesIO:
    """A Parquet file's path, or its bytes where it lies in an archive."""
    stream_ = blocks(origin, parquet=True)
    head = next(stream_)
    if not head.startswith(PARQUET):
        raise DamagedFileError(
            f"{origin.name}: no Parquet file: it starts with {head[:4]!r}. Cure: get the whole file again"
        )
    if origin.opener is None:
        return origin.path
    whole = io.BytesIO(head)
    whole.seek(len(head))
    for block in stream_:
        whole.write(block)
        if whole.tell() > _MAX_PARQUET:
            raise DamagedFileError(f"{origin.name}: over {_MAX_PARQUET >> 30} GB unpacked. Cure: unpack it first")
    return whole


def _plain(value: Any) -> Any:
    """A Parquet value as JSON would have it, bytes aside."""
    if isinstance(value, str | int | float | bytes | None):
        return value
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        parts = [_plain(part) for part in value]
        return _map(parts) if parts and all(isinstance(part, tuple) for part in parts) else parts
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return _scalar(value)


def _map(entries: list[tuple[Any, Any]]) -> dict[str, Any]:
    """A map's entries, the only values that Arrow gives as tuples, as a dict."""
    found = {str(key): part for key, part in entries}
    if len(found) < len(entries):
        raise ValueError("a map holds a key twice")
    return found


def _scalar(value: Any) -> int | float | str:
    """A time as ISO text, a span in seconds, a decimal as an integer or as its digits."""
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, decimal.Decimal):
        return int(value) if value.as_tuple().exponent == 0 else str(value)
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)
