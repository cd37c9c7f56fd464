"""The package's source as a tree: its modules, what each imports, and the sizes of functions.

Nothing is imported: files are parsed, so an import inside a function or under ``TYPE_CHECKING``
counts as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Import:
    """One import of a module of the package.

    ``names`` maps the names it binds in the importing file to what they stand for: ``module`` for
    the imported module itself, else the name of an object in that module.
    """

    line: int
    module: str
    names: dict[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Function:
    """A function or method, with its dotted name below the package."""

    name: str
    line: int
    n_lines: int
    n_arguments: int


class Module:
    """A parsed file; ``name`` is dotted below the package, and '' is the package itself."""

    def __init__(self, path: Path, source: Path):
        parts = path.relative_to(source).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.path, self.file = path, path.relative_to(source).as_posix()
        text = path.read_text(encoding="utf-8")
        self.n_lines = len(text.splitlines())
        self.tree = ast.parse(text)

    @cached_property
    def parent(self) -> tuple[str, ...]:
        """The package that relative imports start from."""
        parts = tuple(self.name.split(".")) if self.name else ()
        return parts if self.is_package else parts[:-1]

    @cached_property
    def functions(self) -> list[Function]:
        return list(_list_functions(self.tree, self.name))

    @cached_property
    def definitions(self) -> dict[str, ast.FunctionDef | ast.ClassDef]:
        """Functions and classes at the top of the file."""
        kinds = ast.FunctionDef | ast.ClassDef
        return {node.name: node for node in self.tree.body if isinstance(node, kinds)}

    def list_imports(self, package: str, modules: set[str]) -> list[Import]:
        """Imports of modules of the package, wherever in the file they are."""
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top, _, rest = alias.name.partition(".")
                    if top == package:
                        names = {alias.asname: "module"} if alias.asname else {}
                        found.append(Import(node.lineno, rest, names))
            elif isinstance(node, ast.ImportFrom):
                start = self._resolve(node, package)
                if start is None:
                    continue
                for alias in node.names:
                    bound, inner = alias.asname or alias.name, ".".join((*start, alias.name))
                    if inner in modules:
                        found.append(Import(node.lineno, inner, {bound: "module"}))
                    else:
                        found.append(Import(node.lineno, ".".join(start), {bound: alias.name}))
        return found

    def _resolve(self, node: ast.ImportFrom, package: str) -> tuple[str, ...] | None:
        parts = tuple(node.module.split(".")) if node.module else ()
        if node.level:
            return self.parent[: len(self.parent) - (node.level - 1)] + parts
        return parts[1:] if parts[0] == package else None


def _list_functions(node: ast.AST, prefix: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}.{child.name}"
            arguments = child.args
            named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            named += [extra for extra in (arguments.vararg, arguments.kwarg) if extra]
            is_method = isinstance(node, ast.ClassDef) and named[:1] != []
            bound = is_method and named[0].arg in ("self", "cls")
            n_lines = (child.end_lineno or child.lineno) - child.lineno + 1
            if ast.get_docstring(child) is not None:  # an example makes no function longer
                text = child.body[0]
                n_lines -= (text.end_lineno or text.lineno) - text.lineno + 1
            yield Function(name, child.lineno, n_lines, len(named) - bound)
            yield from _list_functions(child, name)
        elif isinstance(child, ast.ClassDef):
            yield from _list_functions(child, f"{prefix}.{child.name}")
        else:
            yield from _list_functions(child, prefix)


class SourceTree:
    """All modules below a folder that is a package."""

    def __init__(self, source: Path):
        self.package = source.name
        self.modules = {
            module.name: module
            for module in (Module(path, source) for path in sorted(source.rglob("*.py")))
        }
        self.imports = {
            name: module.list_imports(self.package, set(self.modules))
            for name, module in self.modules.items()
        }

    def find_cycle(self, names: set[str]) -> list[str]:
        """Modules among ``names`` that import each other in a circle; empty if there are none.

        A package's ``__init__`` re-exports its modules, so it counts as a module of its own: a
        module must not import from the package it is in.
        """
        graph = {
            name: {one.module for one in self.imports[name]} & names - {name} for name in names
        }
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            return list(error.args[1])
        return []

    def find_splats(self) -> list[str]:
        """Calls that spread a record over the arguments of a function of another module.

        ``f(*record)`` and ``f(*record[2:])`` bind fields to arguments by position: reordering the
        fields swaps two numbers without an error. It is allowed to pass on a function's own
        ``*arguments``, to call what takes any number of them, and to build a NamedTuple or call a
        function of the same module, unless from a slice or from the rest of an unpacked record
        (``a, *rest = record``).
        """
        found = []
        for name, module in self.modules.items():
            imported = {
                bound: (one.module, original)
                for one in self.imports[name]
                for bound, original in one.names.items()
            }
            for call, rests, own in _list_calls(module.tree):
                bound, *path = ast.unparse(call.func).split(".")
                where, original = imported.get(bound, (name, bound))
                if original == "module" and path:
                    original = path[-1]
                definition = self.modules[where].definitions.get(original)
                if bound not in imported and definition is None:
                    continue
                if definition is not None and _takes_any_number(definition):
                    continue
                values = [one.value for one in call.args if isinstance(one, ast.Starred)]
                if any(_is_record(value, bound in imported, rests, own) for value in values):
                    callee = ast.unparse(call.func)
                    found.append(f"{module.file}:{call.lineno} spreads a record over {callee}()")
        return found


def _takes_any_number(definition: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether a function, or the constructor of a class, has ``*arguments``."""
    if isinstance(definition, ast.ClassDef):
        made = [one for one in definition.body if getattr(one, "name", "") == "__init__"]
        return bool(made) and _takes_any_number(made[0])
    return definition.args.vararg is not None


def _list_calls(tree: ast.AST) -> Iterator[tuple[ast.Call, set[str], str | None]]:
    """Calls, the rests of records unpacked in the same function, and its own ``*arguments``."""
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            continue
        own = None if isinstance(scope, ast.Module) else scope.args.vararg
        nodes = list(_walk_scope(scope))
        rests = {
            node.value.id
            for node in nodes
            if isinstance(node, ast.Starred)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
        }
        for node in nodes:
            if isinstance(node, ast.Call):
                yield node, rests, own.arg if own else None


def _is_record(value: ast.expr, is_imported: bool, rests: set[str], own: str | None) -> bool:
    """Whether a spread value may be a record whose fields have an order to mistake."""
    if isinstance(value, ast.Subscript):
        return is_imported or isinstance(value.slice, ast.Slice)
    if isinstance(value, ast.Attribute):
        return is_imported
    if isinstance(value, ast.Name):
        return value.id in rests or (is_imported and value.id != own)
    return False


def _walk_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a function's body, without those of functions inside it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from _walk_scope(child)
