"""The views of docs/sql.md: what a report reads of steps and runs."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.rooms.report import Report
from tests.rooms.scene import becomes, ends
from watchbill import App, Permanent, Retry, RunFailed, attempt, receive, sleep

PAGE = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()


@pytest.fixture
def report(kept: str) -> Report:
    return Report(kept)


@pytest.fixture
def app(kept: str) -> App:
    return App(kept)


async def test_a_step_is_told_while_it_runs_and_when_it_has_ended(app: App, report: Report) -> None:
    tries, may_end = [0], asyncio.Event()

    @app.step(retry=Retry(5, backoff="10ms"), timeout="1h")
    async def flaky(n: int) -> int:
        tries[0] += 1
        if tries[0] < 3:
            raise ConnectionError("not yet")
        return n

    @app.step
    async def long(text: str) -> str:
        attempt().progress(47, 100)
        await may_end.wait()
        return text

    @app.workflow
    async def order(n: int) -> str:
        for number in (n, n + 1):
            await flaky(number)
        return await long("it's")

    async with app.rooms():
        handle = await app.start(order, 1, id="order-7", tags=["eu", "big"], priority=3, deadline="1h")
        await becomes(handle, lambda status: any(step.progress for step in status.steps))
        steps = await report.steps("order-7")
        assert {key: (row["type"], row["status"], row["retries"]) for key, row in steps.items()} == {
            "flaky": ("flaky", "completed", 2),
            "flaky.2": ("flaky", "completed", 0),
            "long": ("long", "running", 0),
        }
        done, runs = steps["flaky"], steps["long"]
        assert (done["process_state"], done["failure_count"], done["result"]) == ("Processed", 2, "1")
        assert done["assigned_agent"] == runs["assigned_agent"] == runs["locked_by"] is not None
        assert (done["locked_by"], done["complete_by"], done["payload"]) == (None, None, None)
        assert (runs["payload"], runs["max_retries"], runs["process_state"]) == ('["it\'s"]', 3, "Processing")
        assert str(runs["complete_by"]) > str(runs["updated_at"]) >= str(runs["created_at"])
        run = await report.run("order-7")
        assert (run["type"], run["version"], run["status"], run["current_steps"]) == ("order", 1, "running", "long")
        assert (run["retry_count"], run["tags"], run["priority"]) == (2, "eu, big", 3)
        assert (
            str(run["timeout_deadline"])
            > str(run["last_heartbeat"])
            >= str(run["started_at"])
            >= str(run["created_at"])
        )
        may_end.set()
        await ends(handle)
        assert (await report.steps("order-7"))["long"]["status"] == "completed"
        run = await report.run("order-7")
        assert (run["status"], run["current_steps"]) == ("completed", None)
        assert run["ended_at"] is not None


async def test_what_failed_waits_or_is_a_child(app: App, report: Report) -> None:
    @app.step
    async def fails() -> None:
        raise Permanent("no")

    @app.workflow
    async def below() -> None:
        await sleep(3_600)

    @app.workflow
    async def above() -> None:
        await below()

    @app.workflow
    async def broken() -> None:
        await asyncio.gather(fails())

    async with app.rooms():
        parent = await app.start(above, id="p")
        await becomes(parent, lambda status: status.state == "waiting")
        await becomes(app.handle("p/below"), lambda status: status.state == "waiting")
        child = await report.run("p/below")
        assert (child["status"], child["parent_id"]) == ("waiting", "p")
        assert child["wakes_at"] is not None
        assert (await report.run("p"))["waits_for"] == "run 'p/below'"
        with pytest.raises(RunFailed):
            await ends(await app.start(broken, id="b"))
        [failed] = (await report.steps("b")).values()
        assert (failed["status"], failed["process_state"], failed["failure_count"]) == ("failed", "Error", 1)
        assert "Permanent" in failed["result"]


async def test_the_times_of_what_waits_are_those_of_the_clock_whatever_its_priority(app: App, report: Report) -> None:
    @app.step(retry=Retry(5, backoff="1h"))
    async def fails() -> None:
        raise ConnectionError("not yet")

    @app.workflow
    async def job() -> None:
        await fails()

    async with app.rooms(agent=False):
        handle = await app.start(job, id="j", priority=10)
        await becomes(handle, lambda status: status.steps)
        [step] = (await report.steps("j")).values()
        run = await report.run("j")
        assert str(run["created_at"]) <= str(step["created_at"]) <= str(step["updated_at"])


async def test_a_run_that_goes_on_no_longer_says_for_what_it_waited(app: App, report: Report) -> None:
    may_end = asyncio.Event()
    may_end.set()

    @app.step
    async def work() -> None:
        attempt().progress(1)
        await may_end.wait()

    @app.workflow
    async def order() -> None:
        await work()
        await receive("approve", int)

    async with app.rooms():
        handle = await app.start(order, id="o")
        await becomes(handle, lambda status: status.state == "waiting")
        may_end.clear()
        await handle.rewind("work")
        await becomes(handle, lambda status: any(step.progress for step in status.steps))
        run = await report.run("o")
        assert (run["status"], run["waits_for"]) == ("running", None)
        may_end.set()


async def test_the_queries_of_the_page_run_and_its_tables_name_every_column(app: App, report: Report) -> None:
    async with app.rooms():
        pass
    [queries] = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    for query in queries.strip().split(";\n\n"):
        await report.rows(query.rstrip(";\n"))
    for view in ("steps", "workflows"):
        [table] = re.findall(rf"## `{view}`.*?\n(\|.*?)(?:\n\n|\Z)", PAGE, re.DOTALL)
        told = [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])]
        if report.url.startswith("sqlite"):
            columns = [row["name"] for row in await report.rows(f"SELECT name FROM pragma_table_info('{view}')")]
        else:
            # In this store alone: other tests may have left others on the server.
            query = (
                "SELECT column_name AS name FROM information_schema.columns"
                f" WHERE table_schema = current_schema() AND table_name = '{view}'"
            )
            columns = [row["name"] for row in await report.rows(query)]
        assert sorted(told) == sorted(columns)
