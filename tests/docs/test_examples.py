"""The scenarios of examples/ play by themselves, with their faults, and end as they say."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.postgres import emptied

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE = 110


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (
            "provisioning",
            [
                "machines: ['vm-1.create-vm.eu'], asked for twice under one key",
                "create-vm, attempt 1: step_failed: Lost: ",
                "left behind: []; undone, last first: ",  # of three branches: in which order, the example checks
                "switch: all 2 retries are used up",
                "resources: 19, all in us",
                "two machines are there, whole; of the third nothing is: 38 resources in all",
            ],
        ),
        (
            "payment",
            [
                "'payments': o-4: Was EUR 120.00 captured? [captured / not captured / refund]",
                "'managers': o-5: Was EUR 120.00 captured? [captured / not captured / refund]",
                "remind: nobody has answered yet, or decided",
                "the bank's books are closed",
                "Pay EUR 2500.00 for o-8? It takes somebody else than ada.",
                "its breaker opened at",
                "its breaker is closed; all five orders are paid",
                "every order is paid, and none twice; one is refunded, once;",
                "the ledger has EUR 3820.00, and so has the bank",
            ],
        ),
        (
            "video",
            [
                "fast from 0 %, fast from 47 %, safe from 0 %",
                "are gone; the second attempt was at the other agent",
                "Stalled: no progress",
                "'chunk-3.safe'",
                "the other five chunks were encoded once each",
            ],
        ),
    ],
)
@pytest.mark.parametrize("store", ["file", "postgres"])
def test_a_scenario_breaks_and_is_cured(
    scenario: str, said: list[str], store: str, request: pytest.FixtureRequest
) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WATCHBILL_")}
    if store == "postgres":
        environment["EXAMPLE_STORE"] = url = request.getfixturevalue("postgres_url")
        asyncio.run(emptied(url))
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{scenario}.py")],
        capture_output=True,
        text=True,
        env=environment,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("what broke", "how it was found", "how it was cured", "cost", *said):
        assert words in done.stdout
