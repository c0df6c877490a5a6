"""Small defects of a module's source, made one at a time: what a careless change might do.

Messages, annotations and docstrings are left alone: a defect there promises nothing that is false.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_SWAPPED = {
    "min": "max",
    "max": "min",
    "ceil": "floor",
    "floor": "ceil",
    "any": "all",
    "all": "any",
}
# Calls whose loss changes no promise: what people are told, and where crash tests stop a process.
_TELLING = {"debug", "info", "warning", "error", "log", "fail_point", "_tell", "_observe"}


NAMED = "named"  # the operator of defects that are written down in named.py


@dataclass(frozen=True)
class Mutant:
    """A defect: where it is, what stood there and what stands there now."""

    module: str
    line: int
    operator: str
    before: str
    after: str
    number: int  # among the places of the module, in order; below 0 it is none of them
    label: str = ""  # what people call it

    @property
    def name(self) -> str:
        """The same for the same defect wherever the lines around it move to."""
        if self.operator == NAMED:
            return f"{self.module}: {self.label}"
        return f"{self.module}: {self.operator}: {self.before} -> {self.after}"


class _Finder(ast.NodeVisitor):
    """Collects (operator, node, field, index, replacement) for every place that can be changed."""

    def __init__(self) -> None:
        self.found: list[tuple[str, ast.AST, str, int | None, Any]] = []

    def add(self, operator: str, node: ast.AST, name: str, index: int | None, new: Any) -> None:
        self.found.append((operator, node, name, index, new))

    def visit_If(self, node: ast.If) -> None:
        last = node.body[-1]
        if isinstance(last, ast.Raise) and not node.orelse:
            self.add("check removed", node, "test", None, ast.Constant(False))
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        """What an error says is left alone."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """For the type checker."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Words."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for child in (*node.args.defaults, *node.args.kw_defaults, *node.body):
            if child is not None:
                self.visit(child)

    def visit_Compare(self, node: ast.Compare) -> None:
        for index, op in enumerate(node.ops):
            self.add("comparison", node, "ops", index, _COMPARED[type(op)]())
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        if (other := _COMPUTED.get(type(node.op))) is not None and not texts:
            self.add("arithmetic", node, "op", None, other())
        elif isinstance(node.op, ast.Pow):
            self.add("arithmetic", node, "op", None, ast.Mult())
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self.add("logic", node, "op", None, other)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            doubled = ast.UnaryOp(ast.Not(), copy.deepcopy(node.operand))
            self.add("logic", node, "operand", None, doubled)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if type(node.value) is int:
            self.add("constant", node, "value", None, node.value + 1)
        elif type(node.value) is float and node.value:
            self.add("constant", node, "value", None, node.value * 2)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if isinstance(node.func, ast.Name):
            name = node.func.id
        if other := _SWAPPED.get(name):
            field = "attr" if isinstance(node.func, ast.Attribute) else "id"
            self.add("function", node.func, field, None, other)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        call = node.value
        if isinstance(call, ast.Call):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if name in _TELLING or name.startswith("warn"):
                return
            self.add("call removed", node, "value", None, ast.Constant(None))
        self.generic_visit(node)


def _places(tree: ast.Module) -> list[tuple[str, ast.AST, str, int | None, Any]]:
    finder = _Finder()
    for statement in tree.body:  # settings at the top are constants too
        finder.visit(statement)
    return finder.found


def extent(source: str, mutant: Mutant) -> tuple[int, int, bool]:
    """First and last line of the statement that a defect is in, and whether Python runs it later.

    What stands outside of functions runs at import; of compiled loops Python runs no line.
    """
    tree, first, last = ast.parse(source), 0, 0
    if mutant.operator == NAMED:
        place = source.index(mutant.before) + len(mutant.before) - len(mutant.before.lstrip())
        line = source.count("\n", 0, place) + 1
    else:
        line = _places(tree)[mutant.number][1].lineno  # type: ignore[attr-defined]
    for statement in ast.walk(tree):  # inner ones come later
        if isinstance(statement, ast.stmt):
            body = getattr(statement, "body", None)
            end = body[0].lineno - 1 if body else statement.end_lineno or 0
            if statement.lineno <= line <= max(statement.lineno, end):
                first, last = statement.lineno, max(statement.lineno, end)
    functions = [
        node for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.body[0].lineno <= line <= (node.end_lineno or 0)
    ]  # fmt: skip
    return first, last, bool(functions) and not any(map(_is_compiled, functions))


def home(source: str, mutant: Mutant) -> list[str]:
    """Names of the classes and of the outermost function that a defect is inside of."""
    first, last, _ = extent(source, mutant)
    path: list[str] = []
    body: list[ast.stmt] = ast.parse(source).body
    while True:
        for node in body:
            inside = node.lineno <= first and last <= (node.end_lineno or 0)
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and inside:
                path.append(node.name)
                break
        else:
            raise LookupError("it is inside of no function")
        if isinstance(node, ast.FunctionDef):
            return path
        body = node.body


def _is_compiled(function: ast.FunctionDef) -> bool:
    return any("compiled" in ast.unparse(decorator) for decorator in function.decorator_list)


def mutants(module: str, source: str) -> Iterator[Mutant]:
    """Every defect of a module that the operators know."""
    tree = ast.parse(source)
    for number, (operator, node, name, index, new) in enumerate(_places(tree)):
        shown = node if isinstance(node, ast.expr) else getattr(node, "test", node)
        before = ast.unparse(shown)
        changed = copy.deepcopy(node)
        _put(changed, name, index, new)
        shown = changed if isinstance(changed, ast.expr) else getattr(changed, "test", changed)
        line = getattr(node, "lineno", 0)
        yield Mutant(module, line, operator, _short(before), _short(ast.unparse(shown)), number)


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """The module with that one defect."""
    if mutant.operator == NAMED:
        source = source.replace(mutant.before, mutant.after, 1)
    tree = ast.parse(source)
    if mutant.number >= 0:
        _, node, name, index, new = _places(tree)[mutant.number]
        _put(node, name, index, new)
    return ast.fix_missing_locations(tree)


def _put(node: ast.AST, name: str, index: int | None, new: Any) -> None:
    if index is None:
        setattr(node, name, new)
    else:
        getattr(node, name)[index] = new


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 90 else f"{text[:87]}..."
