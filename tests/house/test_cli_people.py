"""Commands by which people decide: beside the process that drives the store."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forked import watchbill
from tests.house.conftest import Kept
from tests.house.test_cli_acts import DESK, Desk, driven, until

WHY = ("--reason", "the bank is back", "--by", "ada")


class Bank(Desk):
    """A desk whose payments kill their processes until the bank has opened for them."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(url)
        self._folder = folder

    def opens_for(self, *orders: str) -> None:
        for order in orders:
            (self._folder / f"bank.{order}").touch()

    def quarantined(self, *orders: str) -> Any:
        """Start payments, and wait until all of them wait for a person, in one incident."""
        for order in orders:
            self.json("run", "start", "payment", f'"{order}"', "--id", order)
        wanted = len(orders)
        [incident] = until(
            lambda: self("incidents", "list", "-o", "json"), lambda found: found and found[0]["members"] == wanted
        )
        return incident

    def item(self, run: str) -> str:
        [item] = [item for item in self.json("inbox", "list") if item["run"] == run]
        return str(item["id"])


@pytest.fixture
def bank(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bank]:
    monkeypatch.setenv("DESK_BANK", str(tmp_path / "bank"))
    bank = Bank(kept.url, tmp_path)
    with driven(bank.url):
        yield bank


def test_an_incident_is_listed_shown_and_resumed(bank: Bank) -> None:
    incident = bank.quarantined("p-1", "p-2", "p-3")
    assert incident["cause"].startswith("quarantine of bank ")
    assert set(incident["examples"]) <= {"p-1", "p-2", "p-3"}
    assert incident["actions"] == ["resume", "retry", "provide", "skip", "undo", "abort"]
    listed = bank("incidents", "list").out
    assert "(3 calls)" in listed
    assert "-> decide: watchbill incidents" in listed
    shown = bank.json("incidents", "show", incident["id"])
    assert [call["kind"] for call in shown["calls"]] == ["quarantine"] * 3
    assert shown["members"] == 3
    assert "for example of" in bank("incidents", "show", incident["id"]).out
    bank.opens_for("p-1", "p-2", "p-3")
    [acted] = bank.json("incidents", "resume", incident["id"], "--per-second", "2", *WHY)
    assert (acted["action"], acted["outcome"]) == ("resume", "told")
    for id in ("p-1", "p-2", "p-3"):
        assert bank.becomes(id, "completed")["result"] == f"{id} paid 5"
    until(lambda: bank("incidents", "list", "-o", "json"), lambda found: found == [])
    [resolved] = bank.json("incidents", "list", "--all")
    assert (resolved["state"], resolved["members"]) == ("resolved", 3)
    page = bank("incidents", "show", incident["id"]).out
    assert "told         by ada, all calls that it had then" in page
    assert "what to do" not in page
    assert "decide" not in page
    again = bank("incidents", "resume", incident["id"], *WHY)
    assert (again.code, again.out) == (1, "")
    assert "nothing waits for a decision" in again.err


def test_runs_that_have_failed_are_listed_shown_retried_and_left(bank: Bank) -> None:
    for id in ("p-1", "p-2"):
        bank.json("run", "start", "parcel", f'"{id}"', "--id", id)
    [incident] = until(
        lambda: bank("incidents", "list", "-o", "json"), lambda found: found and found[0]["members"] == 2
    )
    assert incident["cause"].startswith("failure of stamp ")
    assert (incident["actions"], incident["member"]) == (["retry", "skip"], "run")
    listed = bank("incidents", "list").out
    assert "(2 runs)" in listed
    assert f"watchbill incidents retry {incident['id']} --reason WHY" in " ".join(listed.split())
    shown = " ".join(bank("incidents", "show", incident["id"]).out.split())
    assert "2 runs, for example p-" in shown
    assert "ValueError: no stamp for 'p-" in shown
    assert f"It belongs to incident {incident['id']}" in str(bank.json("run", "explain", "p-1")["sentences"])
    refused = bank("incidents", "abort", incident["id"], *WHY)
    assert (refused.code, refused.out) == (2, "")
    assert "retry goes on with them as new runs, skip leaves them as they are; got abort" in " ".join(
        refused.err.split()
    )
    bank.opens_for("p-1")
    [acted] = bank.json("incidents", "retry", incident["id"], "--per-second", "1", *WHY)
    assert (acted["action"], acted["outcome"]) == ("retry", "told")
    assert bank.becomes("p-1~2", "completed")["result"] == "p-1 stamped"
    assert bank.becomes("p-2~2", "failed")["error"]["type"] == "ValueError"  # it is not tried for ever
    until(
        lambda: bank("incidents", "list", "-o", "json"),
        lambda found: [(one["id"], one["members"]) for one in found] == [(incident["id"], 1)],
    )
    until(lambda: bank("incidents", "skip", incident["id"], *WHY, "-o", "json"), lambda acted: acted)
    until(lambda: bank("incidents", "list", "-o", "json"), lambda found: found == [])
    assert bank.json("run", "show", "p-2~2")["state"] == "failed"


def test_one_call_is_retried_edited_provided_skipped_and_its_run_aborted_or_undone(bank: Bank) -> None:
    bank.quarantined("retry", "edit", "provide", "skip", "undo", "abort")
    bank.opens_for("retry")
    bank.json("incidents", "retry", bank.item("retry"), *WHY)
    bank.json("incidents", "retry", "edit", "--call", "bank", "--args", '{"cents": 7}', *WHY)
    bank.json("incidents", "provide", bank.item("provide"), '"in cash"', *WHY)
    bank.json("incidents", "skip", bank.item("skip"), *WHY)
    bank.json("incidents", "undo", bank.item("undo"), *WHY)
    bank.json("incidents", "abort", bank.item("abort"), *WHY)
    assert bank.becomes("retry", "completed")["result"] == "retry paid 5"
    assert bank.becomes("edit", "completed")["result"] == "edit paid 7"
    assert bank.becomes("provide", "completed")["result"] == "in cash"
    assert bank.becomes("skip", "completed")["result"] is None
    assert bank.becomes("undo", "undone")["error"]["message"] == "the bank is back"
    assert bank.becomes("abort", "cancelled")["error"]["message"] == "the bank is back"
    events = bank("run", "watch", "skip", "-o", "jsonl").out
    assert '"by ada: the bank is back"' in events
    until(lambda: bank("incidents", "list", "-o", "json"), lambda found: found == [])


def test_what_does_not_fit_is_refused_and_can_be_decided_again(bank: Bank) -> None:
    bank.quarantined("p-1")
    item = bank.item("p-1")
    early = bank("incidents", "provide", item, "5", *WHY)
    assert (early.code, early.out) == (2, "")
    assert "the result does not fit step 'bank', and no run was told: Expected" in early.err
    [waiting] = bank.json("inbox", "list")
    assert (waiting["refused"], waiting["answered_by"]) == (None, None)
    named = bank("incidents", "retry", "p-1", *WHY)
    assert "'p-1' is a run: say which of its calls is meant, with --call bank" in named.err
    # Without the program only the run can say it, later.
    told = watchbill("incidents", "provide", item, "5", *WHY, WATCHBILL_STORE=bank.url)
    assert (told.code, told.out) == (0, f"provide {item}: told\n")
    [refused] = until(lambda: bank("inbox", "list", "-o", "json"), lambda items: items and items[0]["refused"])
    assert "provide by ada was refused" in refused["refused"]
    assert "provide by ada was refused" in bank("inbox", "list").out
    shown = bank("incidents", "show", refused["incident"]).out
    assert "provide by ada was refused" in shown
    assert "what to do   decide: watchbill incidents retry " in shown
    bank.json("incidents", "retry", item, "--args", '{"cent": 7}', *WHY)
    until(lambda: bank("inbox", "list", "-o", "json"), lambda items: "did you mean" in items[0]["refused"])
    bank.json("incidents", "provide", item, '"in cash"', *WHY)
    assert bank.becomes("p-1", "completed")["result"] == "in cash"


def test_an_answer_that_does_not_fit_its_form_is_refused_with_exit_code_1(bank: Bank) -> None:
    bank.json("run", "start", "approval", '"ship it?"', "--id", "w-1")
    [asked] = until(lambda: bank("inbox", "list", "--group", "team", "-o", "json"), lambda items: items)
    wrong = bank("inbox", "answer", asked["id"], '"perhaps"', "--by", "bob")
    assert (wrong.code, wrong.out) == (1, "")
    assert "does not fit its form: it must be true or false, got 'perhaps'" in wrong.err
    assert bank.json("inbox", "list") == [asked]
    bank.json("inbox", "answer", asked["id"], "false", "--by", "bob")
    assert bank.becomes("w-1", "completed")["result"] is False


def test_an_item_is_claimed_and_answered_by_whoever_holds_it(bank: Bank) -> None:
    bank.json("run", "start", "approval", '"ship it?"', "--id", "a-1")
    [asked] = until(lambda: bank("inbox", "list", "--group", "team", "-o", "json"), lambda items: items)
    assert bank.json("inbox", "list", "--group", "others") == []
    [acted] = bank.json("inbox", "claim", asked["id"], "--by", "ada")
    assert acted["action"] == "claim"
    [held] = bank.json("inbox", "list")
    assert held["claimed_by"] == "ada"
    assert "held by ada until" in bank("inbox", "list").out
    other = bank("inbox", "answer", asked["id"], "true", "--by", "bob")
    assert (other.code, other.out) == (1, "")
    assert "ada holds" in other.err
    assert "ada holds" in (refused := bank("inbox", "claim", asked["id"], "--by", "bob").err)
    assert "`inbox answer` and the decisions of `incidents` have --force" in refused
    bank.json("inbox", "answer", asked["id"], "true", "--by", "bob", "--force")
    assert bank.becomes("a-1", "completed")["result"] is True


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a run that waits for nobody."""
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/x.db"
    assert watchbill("run", "start", "mail", "--id", "o", "--app", str(DESK), "--store", url).code == 0
    return url


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["incidents", "show", "1f"], "there is no incident"),
        (["incidents", "retry", "1f"], "--reason"),
        (["incidents", "retry", "1f", "--reason", " "], "reason is text"),
        (["incidents", "retry", "1f", "--reason", "x"], "nothing waits for a decision"),
        (["incidents", "retry", "zz", "--reason", "x"], "no incident and no call has that id"),
        (["incidents", "retry", "zz", "--reason", "x"], "`watchbill incidents list`"),
        (["incidents", "retry", "o", "--reason", "x"], "'o' is a run, and no call of it waits for a person"),
        (["incidents", "retry", "1f", "--args", "{", "--reason", "x"], "--args is not valid JSON"),
        (["incidents", "retry", "1f", "--args", "[1]", "--reason", "x"], "by name"),
        (["incidents", "retry", "o", "--call", "bank", "--reason", "x"], "does not wait for a person"),
        (["incidents", "retry", "nobody", "--call", "bank", "--reason", "x"], "there is no run"),
        (["incidents", "provide", "1f", "--reason", "x"], "JSON"),
        (["incidents", "provide", "1f", "in cash", "--reason", "x"], "the result is not valid JSON"),
        (["incidents", "skip", "1f", "--reason", "x"], "nothing waits for a decision"),
        (["incidents", "undo", "1f", "--per-second", "0", "--reason", "x"], "per_second"),
        (["incidents", "abort", "1f", "--reason", "x", "--by", "\x1b[2J"], "by is a name"),
        (["incidents", "resume", "--reason", "x"], "ID"),
        (["inbox", "claim", "1f"], "no question '1f' is open"),
        (["inbox", "claim"], "ID"),
    ],
)
def test_what_cannot_be_decided_says_why(store: str, args: list[str], said: str) -> None:
    told = watchbill(*args, "--store", store)
    assert told.code in (1, 2)
    assert told.out == ""
    assert said in told.err


@pytest.mark.parametrize("id", ["1f", "nonsense"])
@pytest.mark.parametrize(
    "args", [["incidents", "show"], ["incidents", "retry", "--reason", "x"], ["inbox", "claim"], ["run", "show"]]
)
def test_what_is_not_there_is_no_wrong_usage(store: str, args: list[str], id: str) -> None:
    told = watchbill(*args, id, "--store", store)
    assert (told.code, told.out) == (1, "")
