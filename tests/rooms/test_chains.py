"""What was decided is linked by the self-audit; a doctor finds what somebody has changed by hand."""

import pytest

from tests.rooms.test_audit import Office, office
from watchbill.app.chained import PAGE, chained
from watchbill.cli.checks import decisions
from watchbill.supervisor import audit as auditing
from watchbill.testing.conformance.scene import a_decision

__all__ = ["office"]


async def decided(office: Office, runs: int = 1, each: int = 3) -> None:
    for num in range(1, runs + 1):
        run = await office.a_run(num)
        await office.scene.turn(decisions=[a_decision(run.num, n=n) for n in range(each)])
    await office.audits()


async def said(office: Office) -> tuple[str, str]:
    found = decisions(await chained(office.scene.store.client, "default"))
    return found.level, found.said


async def tampered(office: Office, sql: str) -> None:
    """Let somebody who may do everything write to the store."""
    if office.url.startswith("sqlite"):
        await office.by_hand("DROP TRIGGER decision_only_grows")
        await office.by_hand(sql)
        return
    await office.by_hand("ALTER TABLE watchbill.decision DISABLE TRIGGER decision_only_grows")
    await office.by_hand(sql)
    await office.by_hand("ALTER TABLE watchbill.decision ENABLE TRIGGER decision_only_grows")


async def test_what_was_decided_is_linked_by_the_audit_and_a_doctor_says_that_it_holds(office: Office) -> None:
    assert await said(office) == ("ok", "none are linked yet")
    await decided(office, runs=2)
    assert await said(office) == ("ok", "6 about 2 runs are as they were written")


async def test_all_is_linked_however_much_there_is(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditing, "LINKED", 4)
    monkeypatch.setattr(auditing, "MOST_LINKED", 8)
    await decided(office, runs=5)
    assert (await chained(office.scene.store.client, "default")).entries == 9, "of three runs"
    await office.audits()
    assert await said(office) == ("ok", "15 about 5 runs are as they were written")


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        (
            "UPDATE watchbill.decision SET actor = 'x' WHERE run = 2 AND n = 1",
            "decision 2 of 3 (x, charge) was changed",
        ),
        ("DELETE FROM watchbill.decision WHERE run = 2 AND n = 0", "decision 1 of 3 is missing"),
        ("DELETE FROM watchbill.decision WHERE run = 2 AND n > 0", "the last 2 of 3 decisions are missing"),
        ("DELETE FROM watchbill.decision WHERE run = 2", "the last 3 of 3 decisions are missing"),
    ],
)
async def test_what_was_changed_by_hand_is_found(office: Office, sql: str, what: str) -> None:
    await decided(office, runs=2)
    await tampered(office, sql)
    assert await said(office) == ("bad", f"run 'o-2': {what}")


async def test_what_is_written_once_cannot_be_written_otherwise(office: Office) -> None:
    await decided(office)
    for change in ("actor = 'eve'", "chain = NULL"):
        with pytest.raises(Exception, match="what was decided is never changed, and is linked once"):
            await office.by_hand(f"UPDATE watchbill.decision SET {change} WHERE n = 1")
    assert (await said(office))[0] == "ok"


async def test_a_doctor_reads_of_many_runs_the_newest(office: Office) -> None:
    await decided(office, runs=PAGE + 1, each=1)
    assert (await chained(office.scene.store.client, "default", most=1)).runs == PAGE
    assert (await chained(office.scene.store.client, "default")).runs == PAGE + 1
