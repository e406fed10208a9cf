"""What the source must not contain: each rule takes source text or a folder and gives the violations it found."""

import ast
import functools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "watchbill"

Use = tuple[ast.stmt | ast.expr, str]  # where, and the full name of what is used there

UNSAFE_MODULES = frozenset({"pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle"})
UNSAFE_CALLS = frozenset({"eval", "exec", "builtins.eval", "builtins.exec", "yaml.load", "os.system"})
EXECUTORS = frozenset({"execute", "executemany", "executescript", "fetch", "fetchrow", "fetchval"})
HOME_PATH = re.compile(r"(?<![\w.])(?:/home/\w|/root/|/Users/\w|[A-Za-z]:\\+Users\\)")


def worldly_names() -> frozenset[str]:
    """The clocks, randomness and spawning that ruff bans: one list, in pyproject.toml, for both."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return frozenset(config["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"])


def unsafe_code(source: str) -> list[str]:
    """Finds deserializers that run code, eval, exec, and shells."""
    tree = _tree(source)
    imports = [(node, name) for node, name in _imports(tree) if name.partition(".")[0] in UNSAFE_MODULES]
    calls = [(node, name) for node, name in _names_in_use(tree) if name in UNSAFE_CALLS]
    shells: list[Use] = [
        (node.value, "shell=")
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "shell" and not _is_false(node.value)
    ]
    return [f"line {node.lineno}: uses {name}" for node, name in [*imports, *calls, *shells]]


def composed_sql(source: str) -> list[str]:
    """Finds SQL that is put together as text where it is executed."""
    return [
        f"line {node.lineno}: composes the statement it executes; put it into queries/<dialect>/<method>.sql"
        for node in ast.walk(_tree(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in EXECUTORS
        and node.args
        and _is_composed_text(node.args[0])
    ]


def retry_logic(source: str) -> list[str]:
    """Finds workflows that catch errors inside a loop: retries belong into the policy of a step."""
    return [
        f"line {inner.lineno}: workflow {node.name!r} retries by itself"
        for node in ast.walk(_tree(source))
        if isinstance(node, ast.AsyncFunctionDef)
        and any("workflow" in ast.unparse(mark) for mark in node.decorator_list)
        for loop in ast.walk(node)
        if isinstance(loop, ast.For | ast.AsyncFor | ast.While)
        for inner in ast.walk(loop)
        if isinstance(inner, ast.Try)
    ]


def hidden_imports(source: str) -> list[str]:
    """Finds TYPE_CHECKING and relative imports: both hide who knows whom."""
    return [
        f"line {getattr(node, 'lineno', '?')}: {complaint}"
        for node in ast.walk(_tree(source))
        if (complaint := _hides(node))
    ]


def worldly_code(source: str, banned: frozenset[str]) -> list[str]:
    """Finds clocks, randomness and spawning, also under another name."""
    tree = _tree(source)
    used = [*_imports(tree), *_names_in_use(tree)]
    return sorted({f"line {node.lineno}: uses {name}" for node, name in used if _is_below(name, banned)})


def home_paths(text: str) -> list[str]:
    """Finds paths of somebody's home directory."""
    return [
        f"line {number}: names a home directory"
        for number, line in enumerate(text.splitlines(), start=1)
        if HOME_PATH.search(line)
    ]


def packages_without_sign(package: Path) -> list[str]:
    """Finds folders with Python files whose `__init__.py` is missing or says nothing."""
    folders = sorted({path.parent for path in package.rglob("*.py")})
    return [str(folder.relative_to(package.parent)) for folder in folders if not _has_docstring(folder / "__init__.py")]


def stray_queries(store: Path) -> list[str]:
    """Finds .sql files in the wrong place, named by no method of the store, or silent about what they guarantee."""
    named = {text for path in store.rglob("*.py") for text in _strings(ast.parse(path.read_text()))}
    queries = store / "queries"
    found = []
    for path in sorted(queries.rglob("*.sql")):
        where = path.relative_to(queries)
        if len(where.parts) != 2:
            found.append(f"{where}: belongs into queries/<dialect>/<method>.sql")
        if not named & {path.stem, path.name}:
            found.append(f"{where}: no Python file of the store names it")
        if not re.match(r"-- \w+ \w+", path.read_text()):
            found.append(f"{where}: its first line must be a comment that says what it guarantees")
    return found


_LOCKS_GATES = re.compile(
    r"(INTO|DELETE FROM) watchbill\.gate\b|watchbill\.gate\b.*\bFOR UPDATE( OF gate)?\s*\Z", re.DOTALL
)
_BY_CODE_POINTS = re.compile(r'ORDER BY [\w.]*namespace COLLATE "C", [\w.]*name COLLATE "C"')


def gates_locked_in_another_order(store: Path) -> list[str]:
    """Finds statements that lock several gates, and not in the order in which Python sorts their names."""
    found = []
    for path in sorted((store / "queries" / "postgres").glob("*.sql")):
        sql = path.read_text()
        if _LOCKS_GATES.search(sql) and "ORDER BY" in sql and not _BY_CODE_POINTS.search(sql):
            found.append(f'{path.name}: locks gates in the order of the database; say COLLATE "C"')
    return found


def unsorted_or_missing(names: list[str], module: object) -> list[str]:
    """Finds what is wrong with the `__all__` of a module: its order, doubles, or names it does not have."""
    found = [] if names == sorted(set(names)) else ["__all__ is not sorted, or names something twice"]
    return found + [f"{name} cannot be imported" for name in names if not hasattr(module, name)]


@functools.lru_cache(maxsize=1_000)
def _tree(source: str) -> ast.Module:
    """Parse a source; each is asked about several rules."""
    return ast.parse(source)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_below(name: str, banned: frozenset[str]) -> bool:
    parts = name.split(".")
    return any(".".join(parts[:length]) in banned for length in range(1, len(parts) + 1))


def _is_composed_text(node: ast.expr) -> bool:
    match node:
        case ast.JoinedStr():
            return True
        case ast.BinOp(left=left, op=ast.Mod() | ast.Add(), right=right):
            return any(_is_text(side) or _is_composed_text(side) for side in (left, right))
        case ast.Call(func=ast.Attribute(attr="format" | "replace" | "join")):
            return True
        case _:
            return False


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _hides(node: ast.AST) -> str:
    match node:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING") | ast.alias(name="TYPE_CHECKING"):
            return "names TYPE_CHECKING"
        case ast.ImportFrom(level=level) if level:
            return "imports relatively"
        case _:
            return ""


def _has_docstring(path: Path) -> bool:
    return path.exists() and bool(ast.get_docstring(ast.parse(path.read_text())))


def _strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _imports(tree: ast.AST) -> Iterator[Use]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


def _names_in_use(tree: ast.AST) -> Iterator[Use]:
    """Every name and attribute chain, with the aliases of the file's imports undone."""
    meaning = _aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and (dotted := _dotted(node)):
            first, dot, rest = dotted.partition(".")
            # A name that is not imported is the file's own, unless it is a builtin written alone.
            if first in meaning or not dot:
                yield node, meaning.get(first, first) + dot + rest


def _aliases(tree: ast.AST) -> dict[str, str]:
    meaning = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                meaning[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                meaning[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return meaning


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{inner}.{attr}" if (inner := _dotted(value)) else ""
        case _:
            return ""
