"""The family of ``fastrbhc cluster``: one for all columns, or several with columns of their own."""

from __future__ import annotations

import re
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

    def family_of(self, table: Table) -> Family:
        """The family, which knows the columns of the table."""
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
        return Asked(_single(words[0], parameters))
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
