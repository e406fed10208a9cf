"""How long runs are kept, and how often the pruner looks."""

from watchbill import App
from watchbill.clock import SECOND
from watchbill.flow.registry import Registry
from watchbill.scheduler.pruner import LEAST_REST, LONGEST_REST, kept_for, next_look, own_retention
from watchbill.store.protocol import EndedCode
from watchbill.store.sweeping import LARGE, ExpiredRoot, choose

ORDER = ("order", 1)
MINUTE = 60 * SECOND


def a_registry(retention: str | None = None) -> Registry:
    app = App()

    @app.workflow(retention=retention)
    async def order() -> None: ...

    return app.registry


def test_workflow_decides_before_the_app() -> None:
    assert own_retention(a_registry("1m"), 5 * SECOND) == {ORDER: MINUTE}
    assert own_retention(a_registry(), 5 * SECOND) == {ORDER: 5 * SECOND}
    assert own_retention(a_registry(), None) == {ORDER: None}


def test_program_decides_about_its_own_code_whatever_is_recorded() -> None:
    code = EndedCode(*ORDER, oldest=0, known=True)
    assert kept_for(code, {ORDER: 1}, {ORDER: MINUTE}, 5 * SECOND) == MINUTE
    assert kept_for(code, {ORDER: 1}, {ORDER: None}, 5 * SECOND) is None


def test_code_that_is_gone_is_kept_as_it_was_recorded() -> None:
    gone = EndedCode("theirs", 1, oldest=0, known=False)
    assert kept_for(gone, {("theirs", 1): MINUTE}, {ORDER: 1}, 5 * SECOND) == MINUTE
    assert kept_for(gone, {("theirs", 1): None}, {ORDER: 1}, 5 * SECOND) is None


def test_code_that_no_program_recorded_is_kept_as_the_app_wants_unless_a_scheduler_has_it() -> None:
    assert kept_for(EndedCode("theirs", 1, 0, known=False), {}, {}, 5 * SECOND) == 5 * SECOND
    assert kept_for(EndedCode("theirs", 1, 0, known=False), {}, {}, None) is None
    assert kept_for(EndedCode("theirs", 1, 0, known=True), {}, {}, 5 * SECOND) is None


def test_pause_between_walks_follows_the_shortest_retention() -> None:
    assert next_look([None, 5 * SECOND, MINUTE]) == 5 * SECOND
    assert next_look([3_600 * SECOND]) == LONGEST_REST
    assert next_look([0]) == LEAST_REST
    assert next_look([None]) is None


def roots(*sizes: int) -> list[ExpiredRoot]:
    return [ExpiredRoot(num, 100 + num, size, lives=False) for num, size in enumerate(sizes, 1)]


def test_batch_has_no_more_rows_than_a_transaction_may_have() -> None:
    roots_now, rest = choose(roots(3, 3, 3, 3), 10, 7)
    assert roots_now == [1, 2]
    assert rest.after == (102, 2)
    roots_now, rest = choose(roots(9, 1), 10, 7)
    assert roots_now == [1], "one root at least"
    assert rest.after == (101, 1)


def test_batch_passes_over_large_trees_and_those_that_live() -> None:
    found = [*roots(1, LARGE + 1), ExpiredRoot(3, 103, 1, lives=True), ExpiredRoot(4, 104, 1, lives=False)]
    roots_now, rest = choose(found, 4, 100)
    assert roots_now == [1, 4]
    assert rest.large == (2,)
    assert rest.after == (104, 4), "there may be more"
    assert choose(found, 5, 100).rest.after is None
