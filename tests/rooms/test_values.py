"""Values of every kind on their way through a run: arguments, results, checkpoints, messages, answers, published."""

import dataclasses
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import pydantic
import pytest

from tests.rooms.scene import ends
from tests.rooms.test_people import asked
from watchbill import App, InvalidValueError, Retry, RunFailed, StepFailed, ask, attempt, publish, receive
from watchbill.app.fitness import misfits_of_source

ROW: dict[str, object] = {"id": 1, "tags": ["a", None], "inner": {"at": "2026-03-01", "share": 0.5}, "none": None}


async def test_any_json_value_goes_everywhere_as_object(app: App) -> None:
    @app.step(retry=Retry(1, backoff="1ms"))
    async def keeps(row: dict[str, object], rows: list[object]) -> dict[str, object]:
        if attempt().number == 1:
            await attempt().checkpoint(row)
            raise RuntimeError("again")
        return {"row": row, "rows": rows, "restored": attempt().restored}

    @app.workflow
    async def everything(row: dict[str, object]) -> tuple[object, ...]:
        kept: dict[str, object] = await keeps(row, [row, 1])
        publish("row", row)
        sent: Any = await receive("row", dict[str, object])
        answered: Any = await ask("a row?", form=dict[str, object])
        return kept, sent, answered

    async with app.rooms():
        run = await app.start(everything, ROW)
        await run.send("row", ROW)
        item = await asked(app)
        await app.answer(item.id, ROW, by="ada")
        assert await ends(run) == ({"row": ROW, "rows": [ROW, 1], "restored": ROW}, ROW, ROW)
        assert await run.published() == {"row": ROW}


@dataclasses.dataclass
class Card:
    number: str
    kind: Literal["card"] = "card"


@dataclasses.dataclass
class Cash:
    cents: int
    kind: Literal["cash"] = "cash"


class Review(pydantic.BaseModel):
    approved: bool
    stars: Annotated[int, pydantic.Field(ge=1, le=5)]
    at: datetime | None = None


class Comment(pydantic.BaseModel):
    kind: Literal["comment"] = "comment"
    text: str


class Mark(pydantic.BaseModel):
    kind: Literal["mark"] = "mark"
    stars: int


Note = Annotated[Comment | Mark, pydantic.Field(discriminator="kind")]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def test_unions_of_models_come_back_as_the_member_they_were(app: App) -> None:
    @app.step
    async def pays(payment: Card | Cash, note: Note | None) -> list[Card | Cash]:
        assert isinstance(payment, Cash)
        assert isinstance(note, Mark)
        return [payment, Card("1")]

    @app.workflow
    async def buys(payment: Card | Cash) -> tuple[list[Card | Cash], Note]:
        paid = await pays(payment, Mark(stars=3))
        sent = await receive("note", Comment)
        return paid, sent

    async with app.rooms():
        run = await app.start(buys, Cash(5))
        await run.send("note", Comment(text="x"))
        assert await ends(run) == ([Cash(5), Card("1")], Comment(text="x"))


async def test_a_pydantic_model_is_a_form_and_the_run_gets_the_model(app: App) -> None:
    @app.workflow
    async def reviews() -> list[Review]:
        first = await ask("good?", form=Review)
        assert type(first) is Review
        second: Review | None = await ask("better?", form=Review | None)
        assert second is not None
        return [first, second]

    async with app.rooms():
        run = await app.start(reviews)
        item = await asked(app)
        assert item.form["required"] == ["approved", "stars"]
        with pytest.raises(InvalidValueError, match=r"form: at \.stars it must be at most 5, got 6"):
            await app.answer(item.id, {"approved": True, "stars": 6}, by="ada")
        await app.answer(item.id, {"approved": True, "stars": 5, "at": NOON}, by="ada")
        item = await asked(app, lambda item: item.question == "better?")
        await app.answer(item.id, Review(approved=False, stars=1), by="ada")
        assert await ends(run) == [Review(approved=True, stars=5, at=NOON), Review(approved=False, stars=1)]


@pytest.mark.parametrize("form", [Review | Comment, complex, dict[tuple[int, int], str], "Review", 3])
async def test_a_form_that_is_none_is_refused_by_name_when_it_is_asked(app: App, form: Any) -> None:
    @app.workflow
    async def odd() -> None:
        await ask("what?", form=form)

    async with app.rooms():
        with pytest.raises(RunFailed, match=r"the form of ask\(\) is .*, which cannot be read from JSON"):
            await ends(await app.start(odd))
        assert await app.inbox() == []


async def test_a_result_under_object_that_is_not_json_comes_back_as_json_and_the_step_is_done(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    @app.step
    async def looks() -> dict[str, object]:
        done.append("looked")
        return {"at": NOON}

    @app.workflow
    async def all_of_it() -> dict[str, object]:
        return await looks()

    async with app.rooms():
        assert await ends(await app.start(all_of_it)) == {"at": "2026-03-01T12:00:00Z"}
    assert done == ["looked"]
    assert "the result of step 'looks' is stored as JSON: at ['at'] it is of type datetime" in caplog.text


async def test_an_argument_under_object_that_is_not_json_is_refused_before_anything_happens(app: App) -> None:
    @app.step
    async def saves(row: dict[str, object]) -> None:
        raise AssertionError

    @app.workflow
    async def takes(row: dict[str, object]) -> str:
        try:
            await saves({"at": NOON})
        except StepFailed as failed:
            return f"{failed.attempts}: {failed.message}"
        return ""

    with pytest.raises(InvalidValueError, match=r"argument 'row' of workflow 'takes' .* at \['at'\] it is of type"):
        await app.start(takes, {"at": NOON})
    async with app.rooms():
        said = await ends(await app.start(takes, {}))
    assert said.startswith(
        "0: argument 'row' of step 'saves' cannot be stored as it is: at ['at'] it is of type datetime"
    )


def test_what_cannot_be_read_back_is_refused_by_the_decorator() -> None:
    app = App("sqlite:///:memory:")

    @dataclasses.dataclass
    class Plain:
        number: str

    @dataclasses.dataclass
    class Other:
        number: str

    with pytest.raises(InvalidValueError, match=r"the result of step 'f' is annotated as .*Plain and Other: both are"):

        @app.step
        async def f() -> Plain | Other:
            return Plain("1")

    with pytest.raises(InvalidValueError, match=r"argument 'items' of workflow 'g' .*at \[\.\.\.\] it is complex"):

        @app.workflow
        async def g(items: list[complex]) -> None: ...

    assert not app.registry.steps
    assert not app.registry.workflows


async def test_annotations_that_name_what_comes_later_are_refused_at_the_first_start() -> None:
    app = App("sqlite:///:memory:")

    @app.step
    async def f() -> "Nowhere":  # type: ignore[name-defined]  # noqa: F821
        return None

    @app.workflow
    async def g() -> None: ...

    with pytest.raises(InvalidValueError, match="annotations of step 'f' cannot be read: name 'Nowhere'"):
        await app.start(g)
    [misfit] = misfits_of_source(app.registry)
    assert misfit.workflow == "step 'f'"
    assert "name 'Nowhere' is not defined" in misfit.asked
