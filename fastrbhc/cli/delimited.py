"""Text with one row per line: its delimiter, its header, its numbers and its first error."""

from __future__ import annotations

import contextlib
import csv
import math
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from fastrbhc.cli import fast_text
from fastrbhc.cli.fast_text import ENCODING, MISSING, open_text

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_TRUTHS = {"true": 1.0, "false": 0.0}
_ANSWERS = {"yes", "no"}
_FIELD = re.compile(r'"[^"]*"|\S+')
_QUOTED = re.compile(r'"[^"]*"')
# A quotation mark that begins a cell. One inside a cell, as in 5", is a letter like any other.
_OPENING = re.compile(r'(^|[,;\t ])"')
# The most lines of one quoted cell in the header and the first row.
_LONGEST_CELL = 100
_TRAILING = ". If every line ends with a delimiter, this column is empty"
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


def option_for(names: list[str], column: int) -> str:
    """How a column is called on the command line: by its name, or by its position if need be."""
    name = names[column]
    if not name.strip() or name.startswith("-") or names.count(name) > 1:
        return str(column + 1)
    return shlex.quote(name)


def _lines(text: TextIO) -> Iterator[tuple[int, str]]:
    """Lines with the number of the first, counted from 0: a quoted cell may go over several."""
    number, parts = 0, list[str]()
    for last, line in enumerate(text):
        parts.append(line)
        joined = "".join(parts)
        is_open = not joined.startswith("#") and _OPENING.search(_QUOTED.sub("", joined))
        if is_open and len(parts) < _LONGEST_CELL:
            continue
        yield number, joined
        number, parts = last + 1, []
    if parts:
        yield number, "".join(parts)


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
    return not _is_number(cell) and cell.lower() not in MISSING


def layout_of(path: Path) -> Layout:
    """Detect the format from the first lines."""
    comment = ""
    lines: list[str] = []
    starts: list[int] = []
    with open_text(path) as text:
        for number, line in _lines(text):
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
        raise ValueError(f"{path.name} is not a text: give a .csv or .tsv file")
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
            + (", the last of them empty: does it end with a delimiter?" if not last[-1] else "")
            + _if_unclosed(last)
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
    path: Path, layout: Layout, columns: list[int], names: int | None, gaps: int = 0
) -> tuple[NDArray[np.float64], list[str] | None]:
    """The numbers of some columns, in the order asked for, and the column of names as text.

    The first ``gaps`` of these columns may have missing cells, which become NaN. Columns of true
    and false become ones and zeros.
    """
    texts = [] if names is None else [names]
    wanted = fast_text.Wanted(len(layout.names), columns, columns[:gaps], texts)
    found = fast_text.read(path, layout.delimiter, layout.skip, wanted)
    if found is not None and (found.same_lengths or _all_as_wide(path, layout)):
        return found.numbers, found.texts[0] if texts else None
    return _load_with_care(path, layout, columns, names, gaps)


def _load_with_care(
    path: Path, layout: Layout, columns: list[int], names: int | None, gaps: int
) -> tuple[NDArray[np.float64], list[str] | None]:
    """The same by NumPy, with an error for the first fault.

    It is for files with faults, and where neither pyarrow nor pandas is installed, which are many
    times faster. It also reads runs of blanks, and columns of true and false.
    """
    as_they_are = columns == list(range(len(layout.names)))
    if not columns:
        _refuse_first_fault(path, layout, columns, [])
        count = sum(1 for _ in _rows(path, layout))
        return np.empty((count, 0)), None if names is None else _texts(path, layout, [names])[0]
    may_lack = columns[:gaps]
    wanted = None if as_they_are else columns
    converters: dict[int, Any] = dict.fromkeys(may_lack, _number_or_gap)
    truths: list[int] = []
    try:
        try:
            numbers = _read(path, layout, wanted, np.float64, converters or None)
        except UnicodeDecodeError:
            raise
        except ValueError:
            truths = _columns_of_truths(path, layout, columns)
            if not truths:
                raise
            converters |= dict.fromkeys(truths, _truth_or_gap)
            numbers = _read(path, layout, wanted, np.float64, converters)
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        _refuse_first_fault(path, layout, columns, may_lack, truths)
        raise ValueError(f"{path.name} cannot be read: {error}") from None
    # If columns are selected, rows with too many cells are not detected otherwise.
    if np.isnan(numbers).any() or not (as_they_are or _all_as_wide(path, layout)):
        _refuse_first_fault(path, layout, columns, may_lack, truths)
    return numbers, None if names is None else _texts(path, layout, [names])[0]


def columns_of_words(path: Path, layout: Layout, columns: list[int]) -> list[int]:
    """Those of the columns that are text: more than half of their cells are words.

    A column of numbers with a few words in it is none, so that these are found.
    """
    words, there = dict.fromkeys(columns, 0), dict.fromkeys(columns, 0)
    for _, cells in _rows(path, layout):
        for column in columns:
            if column < len(cells):
                cell = cells[column].strip()
                there[column] += cell.lower() not in MISSING
                words[column] += _is_plain_word(cell)
    return [column for column in columns if 2 * words[column] > there[column]]


def _is_plain_word(cell: str) -> bool:
    """Whether a cell is text, and neither a number written in another way nor a truth value."""
    odd = _THOUSANDS.fullmatch(cell) or _DECIMAL_COMMA.fullmatch(cell)
    return _is_word(cell) and not odd and cell.lower() not in _TRUTHS


def _columns_of_truths(path: Path, layout: Layout, columns: list[int]) -> list[int]:
    """Those of the columns in which all cells are true or false, or missing."""
    left, found = list(columns), set[int]()
    for _, row in _rows(path, layout):
        cells = {column: row[column].strip().lower() for column in left if column < len(row)}
        found |= {column for column, cell in cells.items() if cell in _TRUTHS}
        left = [column for column, cell in cells.items() if cell in _TRUTHS or cell in MISSING]
        if not left:
            break
    return [column for column in left if column in found]


def load_text(
    path: Path, layout: Layout, columns: list[int], gaps: bool = False
) -> list[list[str | None]]:
    """Some columns as text, in which no cell is empty; with ``gaps`` an empty one is None."""
    texts: list[list[str | None]] = [[*column] for column in _texts(path, layout, columns)]
    if gaps:
        return [[cell or None for cell in column] for column in texts]
    if any("" in text for text in texts):
        for number, cells in _rows(path, layout):
            for column in columns:
                if not cells[column].strip():
                    option = option_for(layout.names, column)
                    raise ValueError(
                        f"{path.name}, line {number}, column {layout.names[column]!r}: "
                        f"{_complaint('', option)}"
                    )
    return texts


def _texts(path: Path, layout: Layout, columns: list[int]) -> list[list[str]]:
    wanted = fast_text.Wanted(len(layout.names), (), (), columns)
    found = fast_text.read(path, layout.delimiter, layout.skip, wanted)
    if found is not None and found.same_lengths:
        return found.texts
    cells = _read(path, layout, columns, object)
    return [[str(cell).strip() for cell in column] for column in cells.T]


def _read(
    path: Path,
    layout: Layout,
    columns: list[int] | None,
    dtype: type[Any],
    converters: Any = None,
) -> NDArray[Any]:
    """Some columns, or all."""
    with contextlib.ExitStack() as stack:
        # NumPy is fastest with a name, but does not know .GZ in capitals.
        known = path.suffix == ".gz" or path.suffix.lower() != ".gz"
        return np.loadtxt(
            str(path) if known else stack.enter_context(open_text(path)),
            dtype=dtype,
            delimiter=layout.delimiter,
            skiprows=layout.skip,
            usecols=columns,
            converters=converters,
            quotechar='"',
            comments=None,
            encoding=ENCODING,
            ndmin=2,
        )


def _rows(path: Path, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """The cells of every row, with the number of its first line counted from 1."""
    with open_text(path) as text:
        if layout.delimiter is None:
            for number, line in _lines(text):
                if number >= layout.skip and line.strip():
                    yield number + 1, _cells(line, None)
            return
        for _ in range(layout.skip):
            next(text)
        reader = csv.reader(text, delimiter=layout.delimiter, skipinitialspace=True)
        first = layout.skip + 1
        for cells in reader:
            if len(cells) > 1 or any(cell.strip() for cell in cells):
                yield first, cells
            first = layout.skip + reader.line_num + 1


def _all_as_wide(path: Path, layout: Layout) -> bool:
    width = len(layout.names)
    return all(len(cells) == width for _, cells in _rows(path, layout))


def _number_or_gap(cell: str) -> float:
    """A number, or NaN for what stands for a missing one."""
    return math.nan if cell.strip().lower() in MISSING else float(cell)


def _truth_or_gap(cell: str) -> float:
    """1 or 0, or NaN for what stands for a missing one."""
    return _TRUTHS.get(cell.strip().lower(), math.nan)


def _refuse_first_fault(
    path: Path,
    layout: Layout,
    numeric: list[int],
    may_lack: list[int],
    truths: Sequence[int] = (),
) -> None:
    """Raise an error that names the first cell that is not a number, if there is one.

    Columns of ``may_lack`` may have missing cells, and those of ``truths`` are true and false.
    """
    width = len(layout.names)
    for number, cells in _rows(path, layout):
        if len(cells) != width:
            raise ValueError(
                f"{path.name}, line {number}: {len(cells)} cells where {width} were expected"
                + _if_unclosed(cells)
            )
        if _are_plainly_right(cells, numeric):
            continue
        for column in numeric:
            cell = cells[column].strip()
            if column in may_lack and cell.lower() in MISSING:
                continue
            if column in truths and cell.lower() in _TRUTHS:
                continue
            if not _is_number(cell) or np.isnan(float(cell)):
                name = layout.names[column]
                shown = f"{name!r}" if name not in ("", str(column + 1)) else str(column + 1)
                option = option_for(layout.names, column)
                ends = _TRAILING if column + 1 == width and cell == "" else ""
                raise ValueError(
                    f"{path.name}, line {number}, column {shown}: {_complaint(cell, option)}{ends}"
                )


def _if_unclosed(cells: list[str]) -> str:
    """A hint, if a cell goes over the end of its line."""
    several = any("\n" in cell for cell in cells)
    return ". A cell has several lines: is a quotation mark left open?" if several else ""


def _are_plainly_right(cells: list[str], numeric: list[int]) -> bool:
    """A fast check, so that an error at the end of a long file is found in seconds."""
    try:
        sound = not math.isnan(sum([float(cells[column]) for column in numeric]))
    except ValueError:
        return False
    return sound and not any("_" in cells[column] for column in numeric)


def _complaint(cell: str, option: str) -> str:
    if cell.lower() in MISSING:
        return (
            f"missing value ({cell!r}). Fill it in, drop the row, say --missing ignore, or leave "
            f"the column out with --drop {option}"
        )
    if _THOUSANDS.fullmatch(cell):
        return f"{cell!r} has a comma. Write {cell.replace(',', '')}, or use a decimal point"
    if _DECIMAL_COMMA.fullmatch(cell):
        return f"{cell!r} has a decimal comma. Write {cell.replace(',', '.')}"
    if cell.lower() in _TRUTHS or cell.lower() in _ANSWERS:
        return f"{cell!r} is not a number. Write 1 for true and 0 for false"
    return (
        f"{cell!r} is not a number. If the column names the rows, say --id {option}; "
        f"leave it out with --drop {option}; if it holds categories, give every column to a "
        f"family, as in --family ward:OTHERS categorical:{option}"
    )
