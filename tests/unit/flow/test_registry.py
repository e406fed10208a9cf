"""A registry finds code by name, and refuses two alike."""

import pytest

from watchbill.errors import InvalidOptionError
from watchbill.flow.registry import Registry
from watchbill.flow.steps import Step
from watchbill.flow.workflows import Workflow


def encode(path: str) -> str:
    return path


async def release(path: str) -> str:
    return path


def a_registry() -> Registry:
    registry = Registry()
    registry.add_step(Step(encode))
    registry.add_workflow(Workflow(release))
    return registry


def test_steps_and_workflows_are_found_by_name():
    registry = a_registry()
    assert registry.step("encode").plain is encode
    assert registry.workflow("release").plain is release
    assert dict(registry.steps) == {"encode": registry.step("encode")}
    assert dict(registry.workflows) == {"release": registry.workflow("release")}


def test_the_names_are_those_of_the_workflows_in_order():
    registry = a_registry()
    registry.add_workflow(Workflow(release, name="archive"))
    registry.add_workflow(Workflow(release, name="archive", version=2))
    assert registry.names() == ("archive@1", "archive@2", "release@1")
    assert registry.workflow("archive").version == 2
    assert registry.find("archive", 1) is not registry.find("archive", 2)


def test_an_unknown_name_is_answered_with_what_was_probably_meant():
    registry = a_registry()
    with pytest.raises(InvalidOptionError, match="there is no step 'encod' in this App; did you mean 'encode'"):
        registry.step("encod")
    with pytest.raises(InvalidOptionError, match="there is no workflow 'relese' in this App; did you mean 'release'"):
        registry.workflow("relese")
    with pytest.raises(InvalidOptionError, match="there is no workflow 'encode' in this App; there are: release"):
        registry.workflow("encode")
    with pytest.raises(InvalidOptionError, match=r"there is no step 'x' in this App$"):
        Registry().step("x")


def test_two_alike_are_refused_with_both_places():
    registry = a_registry()
    line = encode.__code__.co_firstlineno

    def other() -> None: ...

    with pytest.raises(InvalidOptionError) as refusal:
        registry.add_step(Step(other, name="encode"))
    assert f"{__file__}:{line}" in str(refusal.value)
    assert f"{__file__}:{other.__code__.co_firstlineno}" in str(refusal.value)
    assert "name=" in str(refusal.value)
    assert registry.step("encode").plain is encode


def test_a_step_and_a_workflow_alike_are_refused_too():
    registry = a_registry()
    with pytest.raises(InvalidOptionError, match=r"workflow 'encode' .* cannot be added: step 'encode'"):
        registry.add_workflow(Workflow(release, name="encode"))
    with pytest.raises(InvalidOptionError, match=r"step 'release' .* cannot be added: workflow 'release'"):
        registry.add_step(Step(encode, name="release"))


def test_the_same_function_twice_asks_whether_its_file_was_read_twice():
    registry = a_registry()
    with pytest.raises(InvalidOptionError, match="imported under two names"):
        registry.add_step(Step(encode))
