"""What the columns of a table hold: counts, zeros and ones, measurements, and why it seems so.

In doubt a column holds measurements, which any number can be.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fastrbhc.suggesting.columns import Statistics, Table

CONSTANT, BINARY, CATEGORY, COUNT = "constant", "binary", "category", "count"
SHARE, SKEWED, MEASUREMENT = "share", "positive, skewed", "measurement"
IDENTIFIER, TIME = "identifier", "date or time"
# Kinds that a family for measurements takes.
MEASURED = frozenset({SHARE, SKEWED, MEASUREMENT})
# Kinds that say nothing about clusters.
LEFT_OUT = frozenset({CONSTANT, IDENTIFIER, TIME})

# Fewer rows say little about the kind of their values: examples typed by hand are whole numbers.
FEWEST_ROWS = 20
# Counts have zeros, and a tail: the largest value is rare beside them.
_LEAST_ZEROS, _ZEROS_PER_LARGEST = 0.05, 4.0
# The brightest pixel of a picture, if brightness is a byte.
_BYTES = (128.0, 255.0)
# Different values of an answer on a scale, at most.
_MOST_ANSWERS = 11
# So many twos are expected, and none is there: zeros and ones do not count anything.
_MISSED_TWOS = 10.0
# The skewness of an exponential distribution is 2, and that of most sizes and prices is larger.
_LEAST_SKEWNESS = 1.5
# If so many columns of a table of counts are counts by themselves, the others are counts as well.
_MOST_COUNTS = 0.75
# Values of a column of text that are nearly all different name the rows.
_MOST_WORDS = 0.9
# Numbers of rows are dense: their range is hardly longer than their count.
_DENSE = 2.0
# Rounding, for lengths and totals of rows that are equal.
_ROUNDING = 1e-6


class Kind(NamedTuple):
    """What a column holds, and why it seems so."""

    kind: str
    why: str


def kinds_of(table: Table, known: Statistics) -> list[Kind]:
    """The kind of each column by itself, and beside the others if all are whole numbers."""
    numeric = np.flatnonzero(table.numeric & (known.present > 0))
    picture = numeric.size == table.values.shape[1] and is_picture(known)
    kinds = [_kind(table, known, column, picture) for column in range(table.values.shape[1])]
    if not picture and looks_like_counts(known, numeric):
        alone = [kinds[column].kind for column in numeric if kinds[column].kind != CONSTANT]
        share = sum(what in (COUNT, BINARY) for what in alone) / max(len(alone), 1)
        all_counts = share >= _MOST_COUNTS or are_equal(row_totals(table.values[:, numeric]))
        for column in numeric.tolist():
            if kinds[column].kind == BINARY and column not in table.truths:
                kinds[column] = _binary_beside_counts(known, column)
            elif kinds[column].kind in (MEASUREMENT, SKEWED, IDENTIFIER) and (
                all_counts or known.lowest[column] == 0.0
            ):
                kinds[column] = Kind(COUNT, f"{_whole(known, column)}, beside other counts")
    return [_with_missing(kind, known, column) for column, kind in enumerate(kinds)]


def looks_like_counts(known: Statistics, columns: NDArray[np.int64]) -> bool:
    """Whether all columns together hold counts: whole numbers with many zeros and a tail.

    A scale of answers from 0 to 4 has no tail, nor have the cells of a grid.
    """
    if columns.size == 0 or known.present[columns].max() < FEWEST_ROWS:
        return False
    if not known.whole[columns].all() or known.lowest[columns].min() != 0.0:
        return False
    largest = known.highest[columns].max()
    if largest < 2.0:
        return False
    cells = known.present[columns]
    zeros = float((known.zeros[columns] * cells).sum() / cells.sum())
    reaching = known.highest[columns] == largest
    at_most = float((known.at_most[columns] * cells)[reaching].sum() / cells.sum())
    return zeros >= _LEAST_ZEROS and _ZEROS_PER_LARGEST * at_most <= zeros


def is_picture(known: Statistics) -> bool:
    """Whether all columns may hold the brightness of pixels, as bytes."""
    return bool(known.whole.all() and _BYTES[0] <= known.highest.max() <= _BYTES[1])


def _kind(table: Table, known: Statistics, column: int, picture: bool) -> Kind:
    n = int(known.present[column])
    if column in table.times:
        return Kind(TIME, "dates or times have no unit: convert them, say to days, or leave it out")
    if n == 0:
        return Kind(CONSTANT, "no value at all")
    if column in table.texts:
        return _kind_of_text(table.texts[column], n)
    if known.lowest[column] == known.highest[column]:
        return Kind(CONSTANT, f"always {known.lowest[column]:g}")
    if column in table.truths:
        return Kind(BINARY, f"true or false, {100 * known.means[column]:.0f} % true")
    if not known.whole[column]:
        return _kind_of_fractions(known, column)
    if known.lowest[column] == 0.0 and known.highest[column] == 1.0:
        return Kind(BINARY, f"zeros and ones, {100 * known.means[column]:.0f} % ones")
    return _kind_of_whole(known, column, n, picture)


def _kind_of_text(levels: int, n: int) -> Kind:
    if levels == 1:
        return Kind(CONSTANT, "always the same text")
    if n >= FEWEST_ROWS and levels > _MOST_WORDS * n:
        return Kind(IDENTIFIER, f"text, {levels} different in {n} rows: names, not categories")
    return Kind(CATEGORY, f"text, {levels} different")


def _kind_of_fractions(known: Statistics, column: int) -> Kind:
    lowest, highest = known.lowest[column], known.highest[column]
    skewness = known.skewness[column]
    within = f"between {lowest:.3g} and {highest:.3g}"
    if lowest > 0.0 and known.present[column] >= FEWEST_ROWS and skewness > _LEAST_SKEWNESS:
        return Kind(SKEWED, f"{within}, skewness {skewness:.2g}")
    if lowest >= 0.0 and highest <= 1.0:
        return Kind(SHARE, f"{within}: if it is a share of successes, 'bernoulli' takes it")
    note = ""
    if skewness > _LEAST_SKEWNESS:
        note = f", skewness {skewness:.2g}: logarithms, or roots, may be clearer"
    return Kind(MEASUREMENT, f"{within}{note}")


def _kind_of_whole(known: Statistics, column: int, n: int, picture: bool) -> Kind:
    lowest, highest, levels = known.lowest[column], known.highest[column], known.levels[column]
    whole = _whole(known, column)
    if not picture and looks_like_counts(known, np.array([column])):
        fano = known.variances[column] / known.means[column]
        return Kind(COUNT, f"{whole}, variance {fano:.2g} × mean over all rows")
    if n >= FEWEST_ROWS and known.all_different[column] and highest - lowest < _DENSE * n:
        return Kind(IDENTIFIER, f"{whole}, all different: a numbering of the rows")
    if lowest >= 0.0 and 2 < levels <= _MOST_ANSWERS and highest <= _MOST_ANSWERS:
        return Kind(
            MEASUREMENT, f"{whole}: a rating? if they are codes, name the column categorical"
        )
    skewness = known.skewness[column]
    if lowest > 0.0 and levels > _MOST_ANSWERS and skewness > _LEAST_SKEWNESS:
        return Kind(SKEWED, f"{whole}, skewness {skewness:.2g}")
    if lowest >= 0.0:
        whole = f"{whole}, perhaps brightness of pixels" if picture else whole
        return Kind(MEASUREMENT, f"{whole}: if something is counted, 'poisson' takes it")
    return Kind(MEASUREMENT, whole)


def _binary_beside_counts(known: Statistics, column: int) -> Kind:
    """Zeros and ones in a table of counts are rare counts, unless twos should have occurred."""
    mean, n = known.means[column], known.present[column]
    missed = float(n * -(np.expm1(-mean) + mean * np.exp(-mean)))
    ones = f"zeros and ones, {100 * mean:.0f} % ones"
    if missed > _MISSED_TWOS:
        return Kind(BINARY, f"{ones} and not a single 2")
    return Kind(COUNT, f"{ones}, beside other counts")


def _whole(known: Statistics, column: int) -> str:
    text = f"whole, {known.lowest[column]:.6g} to {known.highest[column]:.6g}"
    zeros = known.zeros[column]
    return f"{text}, {100 * zeros:.0f} % zeros" if zeros >= 0.005 else text


def _with_missing(kind: Kind, known: Statistics, column: int) -> Kind:
    missing = int(known.missing[column])
    if missing == 0:
        return kind
    return kind._replace(why=f"{kind.why}; {missing} missing")


# Rows


def row_totals(values: Any) -> NDArray[np.float64]:
    """The sum of each row; NaN if a cell is missing."""
    return np.asarray(values.sum(axis=1), dtype=np.float64).ravel()


def are_equal(numbers: NDArray[np.float64]) -> bool:
    """Whether all are the same positive number, up to rounding."""
    if np.isnan(numbers).any() or not numbers.min() > 0.0:
        return False
    return bool(numbers.max() - numbers.min() <= _ROUNDING * numbers.max())


def have_unit_length(values: Any) -> bool:
    """Whether all rows have length 1, and more than one column."""
    if values.shape[1] < 2 or values.shape[0] < FEWEST_ROWS:
        return False
    squares = values.multiply(values) if sparse.issparse(values) else np.square(values)
    totals = row_totals(squares)
    return are_equal(totals) and abs(float(totals[0]) - 1.0) <= _ROUNDING
