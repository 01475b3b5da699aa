"""Makes mutants: copies of a source file with one small bug each."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from itertools import count
from typing import Any

import parso
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.provider import OperatorProvider

# Cosmic Ray's operators that make a bug somebody could write. Left out are those whose mutants no test can miss (a name
# swapped for an unknown one) or that change only annotations (`|`).
_OPERATORS = (
    "AddNot",
    "NumberReplacer",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ExceptionReplacer",
    "ZeroIterationForLoop",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub",
    *(
        f"ReplaceComparisonOperator_{name}"
        for name in (
            "Lt_LtE",
            "LtE_Lt",
            "Gt_GtE",
            "GtE_Gt",
            "Eq_NotEq",
            "NotEq_Eq",
            "Is_IsNot",
            "IsNot_Is",
        )
    ),
    *(
        f"ReplaceBinaryOperator_{name}"
        for name in (
            "Add_Sub",
            "Sub_Add",
            "Mul_Div",
            "Div_Mul",
            "FloorDiv_Mul",
            "Mod_Mul",
        )
    ),
)


class DropStatement(Operator):
    """Leaves out a statement that is a call, or an assignment such as `+=`."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "simple_stmt" and _is_dropped(node.children[0]):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[0] = parso.parse(
            node.children[0].get_first_leaf().prefix + "pass"
        )
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


def _is_dropped(statement: Any) -> bool:
    if statement.type == "expr_stmt":
        return bool(
            statement.children[1].type == "operator"
            and statement.children[1].value != "="
        ) or (statement.children[1].type == "augassign")
    return statement.type in ("atom_expr", "power", "await_expr")


@dataclass(frozen=True, slots=True)
class Mutant:
    """Holds the text of a file with one bug. `line` is where; `old` and `new` are the text before and after it."""

    line: int
    old: str
    new: str
    text: str


def mutants_of(source: str, *, most: int | None = None, seed: int = 0) -> list[Mutant]:
    """Return the mutants of a Python file, in the order of their lines; a random sample of `most` if there are more."""
    elsewhere = _lines_of_other_systems(source)
    found = [
        mutant for mutant in dict.fromkeys(_all(source)) if mutant.line not in elsewhere
    ]
    if most is not None and len(found) > most:
        found = random.Random(f"{seed}\n{source}").sample(found, most)
    return sorted(found, key=lambda mutant: (mutant.line, mutant.new))


def _all(source: str) -> Iterator[Mutant]:
    provider = OperatorProvider()
    for operator in (*(provider[name]() for name in _OPERATORS), DropStatement()):
        for occurrence in count():
            try:
                text = mutate_code(source, operator, occurrence)
            except (
                AttributeError
            ):  # Cosmic Ray knows no exceptions with a dot in their names
                continue
            if text is None:
                break
            mutant = _mutant(source, text)
            if not _says_nothing(mutant):
                yield mutant


def _says_nothing(mutant: Mutant) -> bool:
    """Return whether the mutant changes a part that decides nothing in a program that runs.

    A decorator says how a class is made, a bare star parts parameters and is no product, `strict=True` asserts that two
    sequences are equally long, and an import only for types is not made.
    """
    old, new = mutant.old, mutant.new
    return (
        old.startswith(("@", "*,", "if TYPE_CHECKING"))
        or "(*, " in old
        or ", *, " in old
        or old.replace("strict=True", "strict=False")
        == new.replace("strict=True", "strict=False")
    )


def _lines_of_other_systems(source: str) -> set[int]:
    """Return the lines that run only on Windows."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.If)
            and ast.unparse(node.test) == "sys.platform == 'win32'"
        ):
            found |= {
                line
                for part in node.body
                for line in range(part.lineno, (part.end_lineno or 0) + 1)
            }
    return found


def _mutant(source: str, text: str) -> Mutant:
    lines = list(
        unified_diff(source.splitlines(), text.splitlines(), n=0, lineterm="")
    )[2:]
    line = int(lines[0].removeprefix("@@ -").partition(" ")[0].partition(",")[0])
    old, new = (
        " ".join(found[1:].strip() for found in lines[1:] if found[0] == sign)
        for sign in "-+"
    )
    return Mutant(line, old, new, text)
