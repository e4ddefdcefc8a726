"""Text with one row per line: its delimiter, its header, its numbers and its first error."""

from __future__ import annotations

import csv
import gzip
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

_ENCODING = "utf-8-sig"  # a byte order mark is ignored
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-", "."}
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_FIELD = re.compile(r'"[^"]*"|\S+')
_QUOTED = re.compile(r'"[^"]*"')
# A first line 0, 1, 2, … that is at least this long is a header written by pandas, not a row.
_COUNTING_HEADER = 5


class Layout(NamedTuple):
    """The format of a text file."""

    delimiter: str | None  # None for runs of blanks
    skip: int  # lines before the first row
    names: list[str]


def positions(n: int) -> list[str]:
    """Names for columns that have none: 1, 2, 3, …"""
    return [str(position) for position in range(1, n + 1)]


def _open(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding=_ENCODING)
    return path.open(encoding=_ENCODING)


def _cells(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return [cell.strip('"') for cell in _FIELD.findall(line)]
    row = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    return [cell.strip() for cell in row]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _is_word(cell: str) -> bool:
    return not _is_number(cell) and cell.lower() not in _MISSING


def layout_of(path: Path) -> Layout:
    """Detect the format from the first lines."""
    comment = ""
    lines: list[str] = []
    starts: list[int] = []
    with _open(path) as text:
        for number, line in enumerate(text):
            if line.startswith("#") and not lines:
                comment = line[1:]
            elif line.strip():
                lines.append(line.rstrip("\r\n"))
                starts.append(number)
                if len(lines) == 2:
                    break
    if not lines:
        raise ValueError(f"{path.name} is empty")
    if "\0" in lines[0]:
        raise ValueError(f"{path.name} is not a text: give a .csv, .tsv, .npy, .npz or .parquet")
    unquoted = [_QUOTED.sub("", line) for line in lines]
    in_all = [mark for mark in "\t;," if all(mark in line for line in unquoted)]
    in_any = [mark for mark in "\t;," if any(mark in line for line in unquoted)]
    delimiter = next(iter(in_all + in_any), None)
    first, last = _cells(lines[0], delimiter), _cells(lines[-1], delimiter)
    if not _is_header(first, last if len(lines) == 2 else []):
        names = _cells(comment, delimiter)
        named = len(names) == len(first) and any(map(_is_word, names))
        return Layout(delimiter, starts[0], names if named else positions(len(first)))
    if len(lines) < 2:
        raise ValueError(f"{path.name} has a header and no rows")
    if len(first) != len(last):
        raise ValueError(
            f"{path.name}: the header, line {starts[0] + 1}, has {len(first)} names and line "
            f"{starts[1] + 1} has {len(last)} cells"
        )
    return Layout(delimiter, starts[1], first)


def _is_header(first: list[str], second: list[str]) -> bool:
    if not second or not any(map(_is_number, second)):
        return all(map(_is_word, first))
    if any(
        _is_word(name) and not _is_word(cell) for name, cell in zip(first, second, strict=False)
    ):
        return True
    counting = first[1:] if first[0] == "" else first
    at_least = 1 if first[0] == "" else _COUNTING_HEADER
    return len(counting) >= at_least and counting == [str(i) for i in range(len(counting))]


def load(
    path: Path, layout: Layout, columns: list[int], names: int | None
) -> tuple[NDArray[np.float64], list[str] | None]:
    """The numbers of some columns, in the order asked for, and the column of names as text."""
    as_they_are = columns == list(range(len(layout.names)))

    def read(chosen: list[int] | None, dtype: Any) -> NDArray[Any]:
        return np.loadtxt(
            str(path),
            dtype=dtype,
            delimiter=layout.delimiter,
            skiprows=layout.skip,
            usecols=chosen,
            quotechar='"',
            comments=None,
            encoding=_ENCODING,
            ndmin=2,
        )

    try:
        numbers = read(None if as_they_are else columns, np.float64)
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        _refuse_first_fault(path, layout, columns)
        raise ValueError(f"{path.name} cannot be read: {error}") from None
    # If columns are selected, rows with too many cells are not detected otherwise.
    if np.isnan(numbers).any() or not (as_they_are or _all_as_wide(path, layout)):
        _refuse_first_fault(path, layout, columns)
    if names is None:
        return numbers, None
    return numbers, [str(name).strip() for name in read([names], object)[:, 0]]


def _rows(path: Path, layout: Layout) -> Iterator[tuple[int, str]]:
    with _open(path) as text:
        for number, line in enumerate(text, start=1):
            if number > layout.skip and line.strip():
                yield number, line.rstrip("\r\n")


def _all_as_wide(path: Path, layout: Layout) -> bool:
    mark, width = layout.delimiter, len(layout.names)
    if mark is None:
        return all(len(line.split()) == width for _, line in _rows(path, layout))
    return all(line.count(mark) == width - 1 for _, line in _rows(path, layout))


def _refuse_first_fault(path: Path, layout: Layout, numeric: list[int]) -> None:
    """Raise an error that names the first cell that is not a number, if there is one."""
    width = len(layout.names)
    for number, line in _rows(path, layout):
        if _is_plainly_right(line, layout, numeric):
            continue
        cells = _cells(line, layout.delimiter)
        if len(cells) != width:
            raise ValueError(
                f"{path.name}, line {number}: {len(cells)} cells where {width} were expected"
            )
        for column in numeric:
            cell = cells[column]
            if not _is_number(cell) or np.isnan(float(cell)):
                name = layout.names[column]
                shown = f"{name!r}" if name != str(column + 1) else name
                raise ValueError(
                    f"{path.name}, line {number}, column {shown}: {_complaint(cell, name)}"
                )


def _is_plainly_right(line: str, layout: Layout, numeric: list[int]) -> bool:
    """A fast check, so that an error at the end of a long file is found in seconds."""
    cells = line.split(layout.delimiter)
    if len(cells) != len(layout.names) or "_" in line or '"' in line:
        return False
    try:
        return not math.isnan(sum([float(cells[column]) for column in numeric]))
    except ValueError:
        return False


def _complaint(cell: str, name: str) -> str:
    if cell.lower() in _MISSING:
        return (
            f"missing value ({cell!r}). Fill it in, drop the row, or leave the column out with "
            f"--drop {name}"
        )
    if _DECIMAL_COMMA.fullmatch(cell):
        return f"{cell!r} has a decimal comma. Write {cell.replace(',', '.')}"
    return (
        f"{cell!r} is not a number. If the column names the rows, say --id {name}; "
        f"leave it out with --drop {name}"
    )
