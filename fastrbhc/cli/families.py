"""The family of ``fastrbhc cluster``: one for all columns, or several with columns of their own."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fastrbhc.cli.tables import Table
    from fastrbhc.families import Family

# A family with its columns, such as poisson:visits,orders or ward*0.5:age. A letter before the
# colon is a drive in the name of a file.
_WITH_COLUMNS = re.compile(r"([A-Za-z_]\w+)(?:\*([^:]*))?:(.*)", re.DOTALL)


class Asked(NamedTuple):
    """What ``--family`` asks for."""

    family: Any  # a product has names of columns
    ignored: Sequence[str] = ()
    left_open: bool = False  # "auto": what suits the table

    @property
    def columns(self) -> dict[str, bool] | None:
        """The columns of a product, and whether they are text; None for a single family."""
        if not hasattr(self.family, "blocks"):
            return None
        return {
            column: hasattr(block.family, "encode")
            for block in self.family.blocks
            for column in block.columns
        }

    @property
    def text(self) -> bool | None:
        """Whether all columns are text; None if the cells decide."""
        return None if self.left_open else hasattr(self.family, "encode")

    def family_of(self, table: Table, name: str, *, silent: bool = False) -> Family:
        """The family, which knows the columns of the table; says which if that was left open."""
        if self.left_open:
            return _suited(table, name, silent=silent)
        if self.columns is None:
            single: Family = self.family
            return single
        blocks = (
            block._replace(columns=table.places(block.columns)) for block in self.family.blocks
        )
        return self.family._replace(blocks=tuple(blocks))


def one_option_each(words: Sequence[str]) -> list[str]:
    """The words of a command, in which further families with columns get an option of their own.

    Examples
    --------
    >>> from fastrbhc.cli.families import one_option_each
    >>> one_option_each(["--family", "poisson:a", "ward:b", "x.csv"])
    ['--family', 'poisson:a', '--family', 'ward:b', 'x.csv']
    """
    out: list[str] = []
    within, follows = False, False
    for word in words:
        option, _, value = word.partition("=")
        if option == "--family":
            follows = word == option
            within = not follows and _WITH_COLUMNS.fullmatch(value) is not None
        elif follows:
            follows, within = False, _WITH_COLUMNS.fullmatch(word) is not None
        elif within and _WITH_COLUMNS.fullmatch(word):
            out.append("--family")
        else:
            within = False
        out.append(word)
    return out


def asked(words: Sequence[str] | None, **parameters: float | None) -> Asked:
    """What the words after ``--family`` mean, with parameters of a single family."""
    words = list(words or ["auto"])
    given = [_WITH_COLUMNS.fullmatch(word) for word in words]
    if all(match is None for match in given):
        if len(words) > 1:
            raise ValueError(
                f"--family names {' and '.join(words)}: give one family, or columns to each, such "
                "as poisson:visits ward:age"
            )
        without = all(value is None for value in parameters.values())
        return Asked(_single(words[0], parameters), left_open=words == ["auto"] and without)
    for word, match in zip(words, given, strict=True):
        if match is None:
            raise ValueError(
                f"--family {word} has no columns, and other families have: say {word}:COLUMN"
            )
    for key, value in parameters.items():
        if value is not None:
            raise ValueError(f"--{key} is for a single family, and several are given with columns")
    from fastrbhc.families import Block, Product, as_family
    from fastrbhc.families.product import IGNORE

    blocks: list[Block] = []
    ignored: list[str] = []
    for name, weight, columns in (match.groups() for match in given if match is not None):
        names = [column.strip() for column in columns.split(",")]
        if "" in names:
            raise ValueError(f"--family {name}: has an empty name of a column")
        if name == IGNORE and weight is None:
            ignored += names
        else:
            blocks.append(Block(name, names, _weight(name, weight)))
    if not blocks:
        raise ValueError("--family leaves out columns, and gives none to a family")
    product: Any = Product(tuple(blocks))
    return Asked(as_family(product), ignored)


def _suited(table: Table, name: str, *, silent: bool) -> Family:
    """What ``auto`` stands for with this table, said on standard error if it is not the default."""
    from fastrbhc.families.product import IGNORE
    from fastrbhc.suggesting.automatic import resolve_auto

    # Positions, because several columns may have one name.
    labels = [str(position) for position in range(len(table.columns))]
    found: Any
    found, sentence, reason = resolve_auto(table.values, table.weights, labels)
    if hasattr(found, "blocks"):
        blocks = [block._replace(columns=list(map(int, block.columns))) for block in found.blocks]
        found = found._replace(blocks=tuple(blocks))
        without = [block.columns for block in blocks if block.family == IGNORE]
        names = ", ".join(table.columns[column] for columns in without for column in columns)
        taken = f"a family for each column of {name}, because some hold text"
        taken += f"; it leaves out {names}" if names else ""
        other = "poisson:visits categorical:country ignore:name gives families to columns"
    elif table.values.dtype == object:
        raise ValueError(_too_few_rows(table, name))
    else:
        taken = f"{found.name} for {name} ({reason})"
        other = "gaussian takes the rows for measurements"
    if sentence is not None and not silent:
        note = f"fastrbhc: --family auto is {taken}. Another choice: --family {other}"
        print(note, file=sys.stderr)
    suited: Family = found
    return suited


def _too_few_rows(table: Table, name: str) -> str:
    from fastrbhc.cli.delimited import option_for

    words = [any(isinstance(cell, str) for cell in column) for column in table.values.T]
    option = option_for(table.columns, words.index(True))
    return (
        f"column {table.columns[words.index(True)]!r} of {name} holds text, and the rows are too "
        f"few to find a family for each column ({len(table.values)}). If it names the rows, say "
        f"--id {option}; leave it out with --drop {option}; if it holds categories, give every "
        f"column to a family, as in --family ward:OTHERS categorical:{option}"
    )


def _weight(name: str, text: str | None) -> float:
    try:
        return 1.0 if text is None else float(text)
    except ValueError:
        raise ValueError(
            f"--family {name}*{text}: a number was expected after *, such as {name}*0.5"
        ) from None


def _single(name: str, parameters: dict[str, float | None]) -> Family:
    from fastrbhc.families import as_family

    family: Any = as_family(name)
    given = {key: value for key, value in parameters.items() if value is not None}
    for key in given:
        if key not in family._fields:
            raise ValueError(
                f"the family {family.name!r} has no {key}; it has {', '.join(family._fields)}"
            )
    return as_family(family._replace(**given))
