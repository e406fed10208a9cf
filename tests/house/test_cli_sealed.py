"""Commands on a store that keys have sealed: with them, without them, with others."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked import Said, environment, watchbill
from tests.house.test_cli import SHOP, url_of
from tests.keys import FIRST, SECOND, WRONG

WORDS = "(sealed with key 'k1')"


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The runs of the shop, all of them sealed."""
    url = url_of(tmp_path_factory.mktemp("sealed") / "shop.db")
    env = environment(WATCHBILL_STORE=url, WATCHBILL_KEYS=FIRST)
    subprocess.run([*SHOP, "fill"], check=True, capture_output=True, env=env, timeout=60)
    return url


def show(url: str, id: str, *options: str, keys: str = "") -> Said:
    said = watchbill("run", "show", id, "--store", url, *options, WATCHBILL_KEYS=keys)
    assert "Traceback" not in said.err
    return said


@pytest.mark.parametrize("keys", ["", FIRST, SECOND, WRONG])
def test_runs_are_listed_with_and_without_the_key(sealed, keys):
    said = watchbill("run", "list", "--store", sealed, "-o", "json", WATCHBILL_KEYS=keys)
    assert (said.code, said.err) == (0, "")
    assert [run["state"] for run in said.json] == [
        "waiting",
        "cancelled",
        "completed",
        "failed",
        "failed",
        *["completed"] * 2,
    ]
    assert "order-10" in watchbill("run", "list", "--store", sealed, WATCHBILL_KEYS=keys).out


def test_without_keys_words_stand_in_place_of_bodies(sealed):
    assert show(sealed, "order-10", "-o", "json").json["result"] == WORDS
    assert WORDS in show(sealed, "order-10").out
    failed = show(sealed, "delivery-1", "-o", "json").json
    assert failed["error"]["message"] == WORDS
    assert failed["steps"][0]["state"] == "failed"
    assert WORDS in show(sealed, "delivery-1").out
    assert show(sealed, "nap-cancelled", "-o", "json").json["error"]["message"] == WORDS


def test_with_its_key_all_but_the_result_is_shown(sealed):
    shown = show(sealed, "order-10", "-o", "json", keys=FIRST).json
    assert shown["result"] == WORDS
    assert any("bank is busy" in (tried["error"] or "") for step in shown["steps"] for tried in step["attempts"])
    assert show(sealed, "delivery-1", "-o", "json", keys=FIRST).json["error"]["type"] == "ValueError"


def test_reveal_shows_the_result(sealed):
    assert isinstance(show(sealed, "order-10", "--reveal", "-o", "json", keys=FIRST).json["result"], dict)
    assert isinstance(show(sealed, "order-10", "--reveal", "-o", "json", keys=f"{SECOND},{FIRST}").json["result"], dict)


def test_reveal_without_keys_or_with_others_says_what_is_wrong(sealed):
    said = show(sealed, "order-10", "--reveal")
    assert (said.code, said.err) == (2, "watchbill: --reveal needs the keys: give them by $WATCHBILL_KEYS\n")
    missing = show(sealed, "order-10", "--reveal", "-o", "json", keys=SECOND)
    assert "sealed with key 'k1', which is not among the keys here ('k2')" in missing.json["result"]
    wrong = show(sealed, "order-10", "--reveal", "-o", "json", keys=WRONG)
    assert "the key of that id here is another one" in wrong.json["result"]


def test_keys_that_cannot_be_read_are_a_mistake_of_usage_and_do_not_show(sealed):
    said = show(sealed, "order-10", keys="k1:aHVudGVyMjI=")
    assert said.code == 2
    assert "$WATCHBILL_KEYS, key 1 ('k1'): it has 8 bytes, 32 are needed" in said.err
    assert "aHVudGVyMjI" not in said.err


def test_a_program_without_keys_never_imports_cryptography(tmp_path: Path):
    program = (
        "import sys\nfrom watchbill import App\napp = App('sqlite:///:memory:')\n"
        "@app.workflow\nasync def f() -> int:\n    return 1\n"
        "assert app.run(f) == 1\nassert 'cryptography' not in sys.modules\n"
    )
    (tmp_path / "program.py").write_text(program)
    ended = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, env=environment(), timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
