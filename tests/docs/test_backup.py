"""The page about backups: typed as it stands, on a file and on a real server."""

import asyncio
import re
import shlex
import subprocess
from pathlib import Path

from tests.forked import ROOT, environment, run_command
from tests.servers import PostgresServer
from watchbill import App
from watchbill.store.owner import PRIVATE

PAGE = (ROOT / "docs" / "operate" / "backup.md").read_text()
DATABASE = "backup_page"


def typed(section: str) -> list[str]:
    """Give the commands of a section and of those below it."""
    [text] = re.findall(rf"^## {section}$(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return re.findall(r"^\$ (.*)$", text, re.MULTILINE)


async def run_some(url: str, *ids: str) -> set[str]:
    """Run some workflows to their ends; gives the ids of all runs of the store."""
    app = App(url)

    @app.step
    def double(n: int) -> int:
        return 2 * n

    @app.workflow
    async def work(n: int) -> int:
        return await double(n)

    async with app.rooms():
        for id in ids:
            await (await app.start(work, 1, id=id)).result()
        return {run.id async for run in app.runs()}


def test_commands_for_a_file_work(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    asyncio.run(run_some(url, "a"))
    commands = typed("A store in a file")
    assert len(commands) == 9
    for command in commands:
        if command.startswith("rm "):
            assert asyncio.run(run_some(url, "b")) == {"a", "b"}
        if command.startswith("watchbill "):
            said = run_command(
                tuple(shlex.split(command)[1:]), environment(WATCHBILL_STORE="sqlite:///shop.db"), tmp_path
            )
            assert said.code == 0, (command, said.err)
        elif not command.startswith("export "):
            subprocess.run(shlex.split(command), cwd=tmp_path, check=True)
    assert (tmp_path / "shop.db").stat().st_mode & 0o777 == PRIVATE
    assert asyncio.run(run_some(url, "c")) == {"a", "c"}, "b was after the backup"


def test_commands_for_postgresql_work(tmp_path: Path, postgres: PostgresServer) -> None:
    tools = postgres.tool("pg_dump").parent
    postgres.sql(f"CREATE DATABASE {DATABASE}")
    try:
        url = postgres.url(DATABASE)
        asyncio.run(run_some(url, "a"))
        given = f"--dbname=host={postgres.folder} user=postgres dbname={DATABASE}"
        commands = typed("A store on PostgreSQL")
        assert len(commands) == 3
        for command in commands:
            words = [given if word.startswith("--dbname=") else word for word in shlex.split(command)]
            if words[0] == "pg_restore":
                assert asyncio.run(run_some(url, "b")) == {"a", "b"}
            if words[0] == "watchbill":
                said = run_command(tuple(words[1:]), environment(WATCHBILL_STORE=url), tmp_path)
                assert said.code == 0, said.err
            else:
                subprocess.run([tools / words[0], *words[1:]], cwd=tmp_path, check=True)
        assert asyncio.run(run_some(url, "c")) == {"a", "c"}
        said = run_command(("backup", "it's.dump"), environment(WATCHBILL_STORE=url), tmp_path)
        assert said.code == 1
        command = said.err.splitlines()[0].rpartition("back it up: ")[2]
        assert shlex.split(command)[:3] == ["pg_dump", "--format=custom", "--schema=watchbill"]
        subprocess.run([tools / "pg_dump", *shlex.split(command)[1:]], cwd=tmp_path, check=True)
        assert (tmp_path / "it's.dump").stat().st_size > 0
    finally:
        postgres.sql(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def test_page_is_linked_where_operators_look() -> None:
    for page in ("docs/operate/README.md", "docs/cli.md"):
        assert "backup.md" in (ROOT / page).read_text()
