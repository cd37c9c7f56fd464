"""Making mutants: which places of a file are changed, and how."""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

ROOT = Path(__file__).resolve().parent.parent.parent
REPLACED_COMPARISONS = {
    "Lt": ("LtE", "GtE"),
    "LtE": ("Lt", "Gt"),
    "Gt": ("GtE", "LtE"),
    "GtE": ("Gt", "Lt"),
    "Eq": ("NotEq",),
    "NotEq": ("Eq",),
    "Is": ("IsNot",),
    "IsNot": ("Is",),
}
REPLACED_OPERATORS = {
    "Add": "Sub",
    "Sub": "Add",
    "Mul": "Div",
    "Div": "Mul",
    "FloorDiv": "Mul",
    "Mod": "Mul",
    "Pow": "Mul",
    "LShift": "RShift",
    "RShift": "LShift",
    "BitAnd": "BitOr",
    "BitOr": "BitAnd",
    "BitXor": "BitAnd",
}
OPERATORS = [
    "AddNot",
    "NumberReplacer",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub",
    "ReplaceUnaryOperator_Delete_Invert",
    "ZeroIterationForLoop",
    *(
        f"ReplaceComparisonOperator_{a}_{b}"
        for a, others in REPLACED_COMPARISONS.items()
        for b in others
    ),
    *(f"ReplaceBinaryOperator_{a}_{b}" for a, b in REPLACED_OPERATORS.items()),
]


class Mutant(NamedTuple):
    """A change of one place: Cosmic Ray's operator, and which of its occurrences in the file."""

    operator: str
    occurrence: int
    line: int
    key: str


def list_mutants(file: str) -> Iterator[Mutant]:
    """Mutants of a file, but for those in annotations, decorators and ``__all__``."""
    source = (ROOT / file).read_text()
    lines, left_out = source.splitlines(), spans_left_out(source)
    nodes = list(ast_nodes(get_ast(source)))
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        for occurrence, (start, _) in enumerate(places):
            if any(first <= start < last for first, last in left_out):
                continue
            here = sum(place == places[occurrence] for place in places[:occurrence])
            line = lines[start[0] - 1].strip()
            text = f"{file}|{line}|{start[1]}|{name}|{here}"
            key = hashlib.sha256(text.encode()).hexdigest()
            yield Mutant(name, occurrence, start[0], key)


def is_valid(file: str, mutant: Mutant) -> bool:
    """Whether it is valid code that may differ.

    ``shape[-1]`` is ``shape[0]`` for an array of one dimension, and ``shape[1]`` is tried for any;
    the star among parameters is no operator.
    """
    before, after = changed_lines(file, mutant)
    if re.fullmatch(r"[*/],?", before) or before.replace("shape[0]", "shape[ -1]") == after:
        return False
    try:
        ast.parse(mutate(file, mutant))
    except SyntaxError:
        return False
    return True


def spans_left_out(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """First and last positions of annotations and decorators."""
    found: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found += node.decorator_list
        if isinstance(node, ast.FunctionDef):
            found.append(node.returns)
        if isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
    return [
        ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        for node in found
        if node is not None
    ]


def mutate(file: str, mutant: Mutant) -> str:
    """The source of a file with a mutation."""
    source = (ROOT / file).read_text()
    mutated = mutate_code(source, get_operator(f"core/{mutant.operator}")(), mutant.occurrence)
    assert mutated is not None
    return mutated


def changed_lines(file: str, mutant: Mutant) -> tuple[str, str]:
    """The lines that a mutation changes, before and after it, without indentation."""
    before, after = (ROOT / file).read_text().splitlines(), mutate(file, mutant).splitlines()
    old, new = [], []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, False).get_opcodes():
        if tag != "equal":
            old += before[a:b]
            new += after[c:d]
    return "\n".join(each.strip() for each in old), "\n".join(each.strip() for each in new)
