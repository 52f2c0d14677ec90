"""What other tools do not check: the package map, sizes, boundaries, imports without effects."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("api", "engine", "providers", "strategies", "sinks", "analysis")
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 500

# The pair boundary and the process boundary: the only places that may catch everything.
CATCH_ALL = {"engine/scheduler.py", "api/cli.py"}

# The composition root, and the commands it serves: the only api files that see a concrete plugin.
SEES_PLUGINS = ("api/wiring.py", "api/beside.py", "api/commands/")
PLUGINS = ("dikast.providers.", "dikast.strategies.", "dikast.sinks.")

Function = ast.FunctionDef | ast.AsyncFunctionDef

SOURCES = [
    path.relative_to(ROOT).as_posix()
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
]


def parse(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"), filename=name)


def listed_packages() -> dict[str, str]:
    """Package name to folder, as the build sees it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    tool = settings["tool"]["setuptools"]
    folders: dict[str, str] = tool["package-dir"]
    assert sorted(tool["packages"]) == sorted(folders)
    return folders


def body_lines(function: Function) -> int:
    """Lines of a function, its docstring not counted."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None and first.end_lineno is not None:
        lines -= first.end_lineno - first.lineno + 1
    return lines


def caught(handler: ast.ExceptHandler) -> set[str]:
    """The names an `except` catches; a bare one catches `BaseException`."""
    if handler.type is None:
        return {"BaseException"}
    return {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}


def reraises(handler: ast.ExceptHandler) -> bool:
    """Whether it ends by passing on what it caught."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def runtime_imports(tree: ast.AST) -> Iterator[str]:
    """Modules imported when the code runs, so without those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from runtime_imports(node)


def test_the_listed_packages_are_the_packages_of_the_tree() -> None:
    tree = {Path(name).parent.as_posix() for name in SOURCES if name.endswith("/__init__.py")}
    assert set(listed_packages().values()) == tree


def test_every_folder_with_code_is_a_package() -> None:
    folders = {Path(name).parent for name in SOURCES}
    missing = [str(folder) for folder in folders if not (ROOT / folder / "__init__.py").is_file()]
    assert missing == []


@pytest.mark.parametrize("package", sorted(listed_packages()))
def test_a_package_resolves_to_this_checkout(package: str) -> None:
    found = import_module(package).__file__
    assert found is not None
    origin = Path(found).resolve()
    # The link tree has hard links where the file system allows no symbolic ones.
    ours = ROOT / listed_packages()[package] / "__init__.py"
    assert origin.samefile(ours)


@pytest.mark.parametrize("package", sorted(listed_packages()))
def test_all_names_what_is_there_once_and_in_order(package: str) -> None:
    module = import_module(package)
    names: list[str] | None = getattr(module, "__all__", None)
    if names is None:
        pytest.skip("this package exports nothing")
    assert len(names) == len(set(names))
    missing = [name for name in names if not hasattr(module, name)]
    assert missing == []


@pytest.mark.parametrize("name", SOURCES)
def test_a_file_and_its_functions_stay_short(name: str) -> None:
    lines = len((ROOT / name).read_text(encoding="utf-8").splitlines())
    assert lines <= FILE_LINES_MAX, f"{name} has {lines} lines"
    long = {
        node.name: body_lines(node)
        for node in ast.walk(parse(name))
        if isinstance(node, Function) and body_lines(node) > FUNCTION_LINES_MAX
    }
    assert long == {}


@pytest.mark.parametrize("name", SOURCES)
def test_everything_is_caught_only_at_the_named_boundaries(name: str) -> None:
    handlers = [node for node in ast.walk(parse(name)) if isinstance(node, ast.ExceptHandler)]
    swallowed = [
        f"{name}:{handler.lineno}"
        for handler in handlers
        if ("BaseException" in caught(handler) and not reraises(handler))
        or ("Exception" in caught(handler) and name not in CATCH_ALL)
    ]
    assert swallowed == []


@pytest.mark.parametrize("name", [name for name in SOURCES if name.startswith("api/")])
def test_only_the_wiring_and_the_commands_see_concrete_plugins(name: str) -> None:
    if name.startswith(SEES_PLUGINS):
        pytest.skip("allowed here")
    # `from dikast.providers import X` names the package's own list and is no concrete plugin.
    modules = {module for module in runtime_imports(parse(name)) if module.startswith(PLUGINS)}
    packages = {path.rsplit("/", 1)[0] for path in SOURCES}
    concrete = [
        module
        for module in modules
        if (path := module.removeprefix("dikast.").replace(".", "/")) in packages
        or f"{path}.py" in SOURCES
    ]
    assert concrete == []


@pytest.mark.parametrize("name", [name for name in SOURCES if not name.startswith("api/")])
def test_nothing_below_the_door_imports_the_root_package(name: str) -> None:
    assert "dikast" not in set(runtime_imports(parse(name)))


def test_importing_everything_starts_no_thread_and_writes_no_file(tmp_path: Path) -> None:
    modules = [
        f"{package}.{path.stem}" if path.stem != "__init__" else package
        for package, folder in listed_packages().items()
        for path in sorted((ROOT / folder).glob("*.py"))
        if path.stem != "__main__"
    ]
    code = (
        "import importlib, sys, threading\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "left = [thread.name for thread in threading.enumerate()]\n"
        "sys.exit(f'threads: {left}' if len(left) != 1 else 0)\n"
    )
    # -B: the byte code Python itself keeps is not ours to count.
    done = subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []
