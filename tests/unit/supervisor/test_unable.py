"""What nobody can do, and how that is said."""

from watchbill.clock import SECOND
from watchbill.model.incident import Able, Attending, CodeLook, OpenCode
from watchbill.model.queue import QueueDepth
from watchbill.supervisor.unable import unknown, unserved


def a_queue(*needs: str, depth: int = 12, oldest: int = 61, region: str = "", **changes: object) -> QueueDepth:
    queue = QueueDepth("default", 1, region, needs, "", False, depth, oldest * SECOND, 0, 0)
    return queue._replace(**changes)  # type: ignore[arg-type]


def test_it_says_which_agent_is_missing_and_how_to_start_one():
    [trouble] = unserved([a_queue("gpu=1", region="eu")], [])
    assert trouble.cause == "no agent for gpu=1 in region eu"
    assert trouble.said == "no agent for gpu=1 in region eu: 12 calls wait, the oldest for 61 s"
    assert trouble.remedy == "start one: watchbill agent APP --needs gpu=1 --region eu"
    assert (trouble.members, trouble.age) == (12, 61 * SECOND)
    [plain] = unserved([a_queue(depth=1)], [])
    assert (plain.said, plain.remedy) == (
        "no agent: 1 call waits, the oldest for 61 s",
        "start one: watchbill agent APP",
    )


def test_an_agent_serves_what_it_meets_where_it_is():
    queue = a_queue("gpu=2", region="eu")
    assert unserved([queue], [Able("default", "eu", ("cpu", "gpu=2"))]) == []
    for able in (
        Able("default", "eu", ("gpu=1",)),  # too little of it
        Able("default", "eu", ("cpu",)),
        Able("default", "", ("gpu=2",)),  # elsewhere
        Able("other", "eu", ("gpu=2",)),
    ):
        assert len(unserved([queue], [able])) == 1


def test_where_nothing_waits_nobody_is_missing():
    assert unserved([a_queue("gpu", depth=0)], []) == []


def test_queues_of_the_same_needs_are_one_trouble():
    queues = [a_queue("gpu", depth=3, oldest=10), a_queue("gpu", depth=4, oldest=70, limited=True, id=2)]
    [trouble] = unserved(queues, [])
    assert (trouble.members, trouble.age) == (7, 70 * SECOND)


def test_code_that_no_scheduler_knows_is_named_with_a_run_that_waits():
    code = OpenCode("default", "eu", "order", 2, 5, "o-1")
    knows = Attending("default", "eu", ("order@1",))
    [trouble] = unknown(CodeLook((code,), (knows, Attending("default", "", ("order@2",))), None, 0))
    assert trouble.cause == "no code for workflow 'order' version 2 in region eu"
    assert "for example 'o-1'" in trouble.said
    assert unknown(CodeLook((code,), (knows._replace(knows=("order@1", "order@2")),), None, 0)) == []


def test_where_no_scheduler_is_that_is_the_trouble():
    codes = (OpenCode("default", "", "order", 2, 5, "o-1"), OpenCode("default", "", "order", 3, 5, "o-9"))
    assert {trouble.cause for trouble in unknown(CodeLook(codes, (), None, 0))} == {"no scheduler"}
