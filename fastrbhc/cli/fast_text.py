"""Columns of a text read by pyarrow, or else by pandas, if one of them is installed.

They are many times faster than Python, but say little of what is wrong with a file, and take some
mistakes for data. So whatever is out of the ordinary is None here, and `delimited` reads it again,
with care.
"""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

ENCODING = "utf-8-sig"  # a byte order mark is ignored
_MISSING_WORDS = ("na", "n/a", "nan", "null", "none", "?", "-", ".")
# What stands for a missing cell, in small letters.
MISSING = frozenset({"", *_MISSING_WORDS})
# The same as it is usually written.
_SPELLINGS = ["", "NaN", *{f(w) for w in _MISSING_WORDS for f in (str.lower, str.upper, str.title)}]


class Wanted(NamedTuple):
    """Columns of a file, counted from 0."""

    width: int  # the number of all columns
    numeric: Sequence[int]
    may_lack: Sequence[int]  # those of the numeric ones that may have missing cells
    text: Sequence[int]

    @property
    def all(self) -> list[int]:
        """Those to read."""
        return [*self.numeric, *self.text]


class Found(NamedTuple):
    """What has been read."""

    numbers: NDArray[np.float64]  # NaN for missing cells
    texts: list[list[str]]
    same_lengths: bool  # whether all rows are known to have the same number of cells


def read(path: Path, delimiter: str | None, skip: int, wanted: Wanted) -> Found | None:
    """The columns of a text after some lines; None if that takes more care.

    Runs of blanks, for which there is no delimiter, are left to others.
    """
    if delimiter is None or len(set(wanted.all)) < len(wanted.all):
        return None
    for reader in (_by_pyarrow, _by_pandas):
        try:
            found = reader(path, delimiter, skip, wanted)
        except ImportError:
            continue
        return None if found is None or _unexpected_gaps(found, wanted) else found
    return None


def _unexpected_gaps(found: Found, wanted: Wanted) -> bool:
    gaps: list[bool] = np.atleast_1d(np.isnan(found.numbers).any(axis=0)).tolist()
    lacking = {column for column, gap in zip(wanted.numeric, gaps, strict=True) if gap}
    return not lacking <= set(wanted.may_lack)


def open_text(path: Path) -> TextIO:
    """A text in UTF-8, compressed if its name says so."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding=ENCODING)
    return path.open(encoding=ENCODING)


def _by_pyarrow(path: Path, delimiter: str, skip: int, wanted: Wanted) -> Found | None:
    import pyarrow
    from pyarrow import csv

    names = [str(column) for column in range(wanted.width)]
    chosen = [names[column] for column in wanted.all]
    kinds = [pyarrow.float64()] * len(wanted.numeric) + [pyarrow.string()] * len(wanted.text)
    compression = "gzip" if path.suffix.lower() == ".gz" else None
    try:
        with pyarrow.input_stream(str(path), compression=compression) as stream:
            table = csv.read_csv(
                stream,
                csv.ReadOptions(skip_rows=skip, column_names=names),
                csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                csv.ConvertOptions(
                    column_types=dict(zip(chosen, kinds, strict=True)),
                    include_columns=chosen,
                    null_values=_SPELLINGS,
                    strings_can_be_null=False,
                ),
            )
    except (pyarrow.ArrowException, OSError):
        return None
    numbers = np.empty((table.num_rows, len(wanted.numeric)))
    for place in range(len(wanted.numeric)):
        numbers[:, place] = table.column(place).to_numpy()
    texts = [_stripped(column.to_pylist()) for column in table.columns[len(wanted.numeric) :]]
    return Found(numbers, texts, same_lengths=True)


def _by_pandas(path: Path, delimiter: str, skip: int, wanted: Wanted) -> Found | None:
    import pandas

    kinds: dict[int, Any] = dict.fromkeys(wanted.numeric, np.float64)
    # Numbers are to be the same, to the bit, as Python reads them. The option is on its way out,
    # because that becomes the default.
    exact = {"float_precision": "round_trip"} if int(pandas.__version__.split(".")[0]) < 4 else {}
    try:
        with warnings.catch_warnings(), open_text(path) as text:
            warnings.simplefilter("ignore")
            for _ in range(skip):
                next(text)
            frame = pandas.read_csv(
                text,
                sep=delimiter,
                header=None,
                names=range(wanted.width),
                usecols=wanted.all,
                index_col=False,
                dtype=kinds | dict.fromkeys(wanted.text, str),
                na_values=dict.fromkeys(wanted.numeric, _SPELLINGS),
                keep_default_na=False,
                skipinitialspace=True,
                **exact,
            )
    except (ValueError, OSError, EOFError):  # its own errors are ValueErrors
        return None
    numbers = np.empty((len(frame), len(wanted.numeric)))
    for place, column in enumerate(wanted.numeric):
        numbers[:, place] = frame[column].to_numpy()
    texts = [_stripped(frame[column].tolist()) for column in wanted.text]
    return Found(numbers, texts, same_lengths=False)


def _stripped(cells: list[Any]) -> list[str]:
    return [str(cell).strip() for cell in cells]
