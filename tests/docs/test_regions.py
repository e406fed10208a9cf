"""The page about regions: typed as it stands, on a real server, as its owner and as two roles."""

import asyncio
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forked import ROOT, environment, run_command
from tests.rooms.scene import LONG
from tests.servers import PostgresServer
from watchbill import App

PAGE = (ROOT / "docs" / "operate" / "regions.md").read_text()
DATABASE = "regions_page"
USERS = {"owner": "page_owner", "eu": "shop_eu", "us": "shop_us"}


@pytest.fixture
def server(postgres: PostgresServer) -> Iterator[PostgresServer]:
    postgres.sql("CREATE ROLE page_owner LOGIN")
    [script] = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    postgres.sql(script)
    postgres.sql(f"CREATE DATABASE {DATABASE} OWNER page_owner")
    yield postgres
    postgres.sql(f"DROP DATABASE {DATABASE} WITH (FORCE)")
    for role in USERS.values():
        postgres.sql(f"DROP ROLE {role}")


def program(url: str) -> dict[str, Any]:
    """Read the page's program, on a store of the test's."""
    [source] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(source.replace("App()", f"App({url!r})"), names)
    return names


async def test_the_page_keeps_two_regions_apart(server: PostgresServer, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0])
    urls = {who: server.url(DATABASE, user=user) for who, user in USERS.items()}

    async def typed(who: str, command: str) -> str:
        env = environment(WATCHBILL_STORE=urls[who], WATCHBILL_APP="shop.py")
        said = await asyncio.to_thread(run_command, tuple(shlex.split(command)), env, tmp_path)
        assert said.code == 0, (command, said.err)
        return said.out

    given = re.findall(r"^(owner|eu|us)\$ watchbill (.*[^&])$", PAGE, re.MULTILINE)
    assert [who for who, _ in given] == ["owner", "eu", "eu", "us"]
    assert len(re.findall(r"^(eu|us)\$ watchbill up shop.py --region \1 &$", PAGE, re.MULTILINE)) == 2
    said = await typed(*given[0])
    assert "region 'eu' has role 'shop_eu'" in said
    shops = {region: program(urls[region]) for region in ("eu", "us")}
    apps: dict[str, App] = {region: names["app"] for region, names in shops.items()}
    async with apps["eu"].rooms(region="eu"), apps["us"].rooms(region="us"):
        await typed(*given[1])
        handle = apps["eu"].handle("crate-7", shops["eu"]["ship"])
        assert await handle.result(timeout=LONG) == "crate 7 is packed"
        assert "crate-7" in await typed(*given[2])
        assert "crate-7" not in await typed(*given[3])
    for app in apps.values():
        await app.close()
