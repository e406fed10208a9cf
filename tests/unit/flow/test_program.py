"""A program is read again from another process: by its module or its file, without running what it would run."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from watchbill.errors import InvalidOptionError
from watchbill.flow.program import (
    Program,
    StepNotReachableError,
    find_app,
    locate,
    named_program,
    read_program,
    read_step,
    read_workflow,
    stop_if_reading,
)
from watchbill.flow.steps import Step

SCRIPT = """
from watchbill import App
from watchbill.flow.program import stop_if_reading
from watchbill.flow.steps import Step

app = App()

@app.step
def charge(order: str) -> str:
    return order

@app.workflow
async def buy(order: str) -> str:
    return await charge(order)

alone = Step(lambda order: order, name="alone")
stop_if_reading()  # as app.run does
raise AssertionError("this was run")
"""


@pytest.fixture(autouse=True)
def interpreter() -> Iterator[None]:
    """The settings of the interpreter that reading a program changes."""
    path, arguments, modules = list(sys.path), list(sys.argv), set(sys.modules)
    yield
    sys.path[:], sys.argv[:] = path, arguments
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A program that would run something at its end."""
    file = tmp_path / "shop_of_a_test.py"
    file.write_text(SCRIPT)
    return file


def by_file(file: Path) -> Program:
    return Program("", str(file), tuple(sys.path), ("shop",))


def by_module(file: Path, *, file_known: bool = False, folder_known: bool = True) -> Program:
    path = (str(file.parent), *sys.path) if folder_known else tuple(sys.path)
    return Program(file.stem, str(file) if file_known else "", path, ("shop",))


@pytest.mark.parametrize("named", [by_file, by_module])
def test_script_is_read_as_far_as_it_defines_something(script: Path, named) -> None:
    program = named(script)
    assert read_step(program, "charge").plain("o-1") == "o-1"
    assert read_step(program, "alone").plain("o-1") == "o-1"
    assert sys.argv == ["shop"]
    found = read_workflow(program, "buy")
    assert found is not None
    assert found.name == "buy"
    assert read_workflow(program, "sell") is None
    assert "charge" in find_app(program, "app").registry.steps
    assert find_app(program, "").registry.workflows.keys() == {"buy"}


def test_module_that_is_not_on_the_path_is_read_from_its_file(script: Path) -> None:
    assert read_step(by_module(script, file_known=True, folder_known=False), "charge").name == "charge"
    with pytest.raises(ModuleNotFoundError, match="shop_of_a_test"):
        read_step(Program("shop_of_a_test_too", "", tuple(sys.path), ()), "charge")


def test_module_that_imports_what_is_not_there_says_what_that_is(tmp_path: Path) -> None:
    (tmp_path / "lacking.py").write_text("import nowhere_to_be_found")
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
        read_step(by_module(tmp_path / "lacking.py", file_known=True), "charge")


def test_step_that_reading_does_not_define_is_refused_with_its_file(script: Path) -> None:
    with pytest.raises(StepNotReachableError, match=rf"step 'pay' cannot run .*{script.name}' did not define it"):
        read_step(by_file(script), "pay")


def test_file_that_is_no_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shop.txt").write_text("charge")
    with pytest.raises(StepNotReachableError, match=r"shop.txt' cannot be read as Python"):
        read_step(by_file(tmp_path / "shop.txt"), "charge")


def test_app_that_a_program_does_not_have_is_refused_with_those_that_it_has(tmp_path: Path) -> None:
    file = tmp_path / "two.py"
    file.write_text("from watchbill import App\none, two = App(), App()\n")
    with pytest.raises(InvalidOptionError, match=r"two.py' has no App called 'three'; it has one, two"):
        find_app(by_file(file), "three")
    with pytest.raises(InvalidOptionError, match=r"two.py' must name its App, as module:app; it has one, two"):
        find_app(by_file(file), "")
    file.write_text("")
    with pytest.raises(InvalidOptionError, match="it has none"):
        find_app(by_file(file), "")


@pytest.mark.parametrize("name", ["", "  ", ":app"])
def test_name_that_names_no_program_is_refused(name: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"names none: give it as module:app, or by its file"):
        named_program(name)


def test_program_is_named_by_its_module_or_its_file(script: Path) -> None:
    named = named_program(f"{script}:app")
    assert (named.program.module, named.program.file, named.app) == ("", str(script.resolve()), "app")
    assert named.program.path[0] == str(script.parent)
    named = named_program("shop.main")
    assert (named.program.module, named.program.file, named.app) == ("shop.main", "", "")
    with pytest.raises(InvalidOptionError, match=r"is not there: no file .*gone.py'"):
        named_program(str(script.parent / "gone.py"))


def charge(order: str) -> str:
    return order


def test_step_is_located_by_its_module_or_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Step(charge)
    assert locate(step).module == __name__
    assert locate(step).file == __file__
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(charge, "__module__", "__main__")
    with pytest.raises(StepNotReachableError, match="it was typed into an interactive session"):
        locate(step)
    main.__file__ = __file__
    assert (locate(step).module, locate(step).file) == ("", __file__)  # `python shop.py`
    main.__spec__ = sys.modules["pytest"].__spec__
    assert (locate(step).module, locate(step).file) == ("pytest", "")  # `python -m shop`


def test_program_that_runs_is_not_stopped_where_a_reader_stops() -> None:
    stop_if_reading()


@pytest.mark.parametrize("call", ["asyncio.run(main())", "asyncio.Runner().run(main())", "run(main())"])
@pytest.mark.parametrize("in_a_loop", [False, True], ids=["command", "worker"])
def test_program_that_starts_an_event_loop_is_refused_with_line_and_cure(
    tmp_path: Path, call: str, in_a_loop: bool
) -> None:
    file = tmp_path / "eager.py"
    file.write_text(f"import asyncio\nfrom asyncio import run\nasync def main():\n    open('x')\n\n{call}\n")
    program = named_program(str(file)).program

    async def in_worker() -> None:
        read_program(program)

    with pytest.raises(InvalidOptionError, match=r'eager.py, line 6, calls asyncio.run.*`if __name__ == "__main__":`'):
        asyncio.run(in_worker()) if in_a_loop else read_program(program)
    asyncio.run(asyncio.sleep(0))  # an event loop starts again
