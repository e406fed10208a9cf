"""A registry finds code by name, and refuses two alike."""

import pytest

from watchbill.errors import InvalidOptionError
from watchbill.flow.notify import OF_WORKFLOW, News, _address, delivery
from watchbill.flow.registry import Registry
from watchbill.flow.steps import Step
from watchbill.flow.workflows import Workflow
from watchbill.model.run import LONGEST_ID


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


def test_older_version_that_is_added_later_stays_beside_the_newest():
    registry = a_registry()
    registry.add_workflow(Workflow(release, version=3))
    registry.add_workflow(Workflow(release, version=2))
    assert registry.workflow("release").version == 3
    assert registry.find("release", 2) is not None


def test_address_to_notify_is_that_of_its_version_or_of_the_newest():
    registry = a_registry()
    registry.add_workflow(Workflow(release, version=2, notify="https://host/2"))
    registry.add_workflow(Workflow(release, name="archive", notify="https://host/archive"))
    assert registry._address_of("release@2") == "https://host/2"
    assert registry._address_of("release@9") == "https://host/2"
    assert registry._address_of("release@1") is None
    assert registry._address_of("gone@1") is None
    assert registry.step("watchbill:post").name == "watchbill:post"


def test_news_are_posted_to_the_address_of_the_program_or_to_that_which_is_stored():
    addresses = {"order@1": "https://host/1"}
    assert _address("https://host/stored", addresses.get) == "https://host/stored"
    assert _address(f"{OF_WORKFLOW}order@1", addresses.get) == "https://host/1"
    with pytest.raises(InvalidOptionError, match="workflow gone@1 has no notify= in this program"):
        _address(f"{OF_WORKFLOW}gone@1", addresses.get)


def test_run_that_posts_the_news_has_an_id_that_fits():
    for id in ("order-1", "x" * 195):
        posts = delivery(7, ("default", ""), "order@1", News(id, "order", "completed"), 1)
        assert is_id_of_notifier(posts.id)
        assert posts.id.startswith(id[:100])


def is_id_of_notifier(id: str) -> bool:
    return len(id) <= LONGEST_ID and id.endswith("@notify")
