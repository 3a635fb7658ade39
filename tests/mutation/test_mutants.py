"""The harness finds the guards, and a few of them are dropped here; dropping all takes long: see ``__main__``."""

import ast
import functools
import os
import random
import subprocess
import sys
from pathlib import Path

import dmlc
from tools.mutation.mutants import HARMLESS, KILLERS, SWITCH, Mutant, mutants, said, switched, without

ROOT = Path(__file__).parents[2]


@functools.cache
def found() -> list[Mutant]:
    return list(mutants(ROOT))


@functools.cache
def known() -> list[tuple[Mutant, str]]:
    killers = said(KILLERS)
    return [(m, killer) for m in found() if (killer := killers.get(m.path, {}).get(m.key))]


def test_each_mutant_is_a_module_without_one_guard() -> None:
    assert len(found()) > 600
    for mutant in random.Random(1).sample(found(), 10):
        original = (ROOT / mutant.path).read_text("utf-8")
        assert ast.dump(ast.parse(without(original, mutant))) != ast.dump(ast.parse(original)), mutant.place
    assert len({(m.path, m.key) for m in found()}) == len(found())


def test_every_folder_of_rules_has_some() -> None:
    folders = {path.parent.name for path in (ROOT / "dmlc/passes").glob("*/*.py")}
    assert folders == {Path(m.path).parent.name for m in found()} - {"passes"}


RULES = """\
def check(x) -> Miss | None:
    if x.é and not x.b:
        return Miss('no')
    if x is None or x.c or x.ties == 'last':
        return None
    return used(x) or self.plain(x)
def holds(x) -> bool:
    if x.a and x.b:
        return x.c and x.d
    return f'{x if x.a else None}'
def match(x): return None if x.a else Match(x, x) if x.b and x.c else None
"""


def test_what_a_guard_is(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(RULES, "utf-8")
    made = [
        (m.line, m.kind, m.text, without(RULES, m).splitlines()[m.line - 1].strip()) for m in mutants(tmp_path, ".")
    ]
    line = "def match(x): return None if {} else Match(x, x) if {} else None"
    assert made == [
        (2, "refusal", "x.é and not x.b", "if False:"),
        (4, "refusal", "x.c", "if x is None or False or x.ties == 'last':"),
        (4, "refusal", "x.ties == 'last'", "if x is None or x.c or False:"),
        (4, "direction", "'last'", 'if x is None or x.c or x.ties == "first":'),
        (6, "reason", "used(x)", "return None or self.plain(x)"),
        (6, "reason", "self.plain(x)", "return used(x) or None"),
        (8, "condition", "x.a", "if True and x.b:"),
        (8, "condition", "x.b", "if x.a and True:"),
        (9, "part", "x.c", "return True and x.d"),
        (9, "part", "x.d", "return x.c and True"),
        (11, "refusal", "x.a", line.format("False", "x.b and x.c")),
        (11, "condition", "x.b", line.format("x.a", "True and x.c")),
        (11, "condition", "x.c", line.format("x.a", "x.b and True")),
    ]


def test_a_switched_off_guard_is_one_that_is_not_there() -> None:
    """Each switch gives what the mutant has in its place, also where one guard stands inside of another."""
    for path in random.Random(2).sample(sorted({m.path for m in found()}), 5):
        source = (ROOT / path).read_text("utf-8")
        here = [(n, m) for n, m in enumerate(found()) if m.path == path]
        tree = switched(source, here)
        assert ast.dump(_settled(tree, -1)) == ast.dump(ast.parse(source))
        for number, mutant in random.Random(path).sample(here, min(3, len(here))):
            assert ast.dump(_settled(tree, number)) == ast.dump(ast.parse(without(source, mutant))), mutant.place


def _settled(source: str, off: int) -> ast.AST:
    class Settle(ast.NodeTransformer):
        def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
            self.generic_visit(node)
            asks = isinstance(node.test, ast.Call) and ast.unparse(node.test.func) == SWITCH
            if not asks:
                return node
            return node.orelse if ast.unparse(node.test.args[0]) == str(off) else node.body

    return Settle().visit(ast.parse(source))


def test_killers_are_tests_that_exist() -> None:
    """A guard that is written anew has no killer here until ``python -m tools.mutation --write`` finds it."""
    assert len(known()) > len(found()) * 2 // 3
    functions: dict[str, set[str]] = {}
    for mutant, killer in known():
        path, _, name = killer.partition("::")
        if path not in functions:
            tree = ast.parse((ROOT / path).read_text("utf-8"))
            functions[path] = {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        assert name.split("[")[0].split("::")[0] in functions[path], f"{mutant.place}: {killer}"


def test_harmless_guards_are_few_and_have_a_reason() -> None:
    """A reason that a test contradicts, by failing without the guard, has to go."""
    killers = said(KILLERS)
    reasons = {(path, key): reason for path, known in said(HARMLESS).items() for key, reason in known.items()}
    assert len(reasons) <= 20
    for (path, key), reason in reasons.items():
        assert len(reason.split()) > 5, path
        assert key not in killers.get(path, {}), key


#: A plugin of pytest that loads one module of dmlc from another source, so that all others keep their bytecode.
PLUGIN = """
from importlib.machinery import SourceFileLoader
def get_code(loader, name, original=SourceFileLoader.get_code):
    return compile({source!r}, loader.path, "exec") if name == {module!r} else original(loader, name)
SourceFileLoader.get_code = get_code
"""


def test_a_dropped_guard_is_noticed(tmp_path: Path) -> None:
    mutant, killer = random.Random(6).choice(known())
    source = without((ROOT / mutant.path).read_text("utf-8"), mutant)
    module = ".".join(Path(mutant.path).with_suffix("").parts).removesuffix(".__init__")
    (tmp_path / "mutated.py").write_text(PLUGIN.format(source=source, module=module), "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "mutated"]
    path = os.pathsep.join([str(tmp_path), str(Path(dmlc.__file__).parents[1])])
    done = subprocess.run(
        [*command, str(ROOT / killer)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
