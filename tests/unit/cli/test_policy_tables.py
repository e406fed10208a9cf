"""Tables of policies that operators have changed."""

from datetime import UTC, datetime

from watchbill.cli.tables import drawn, list_of_policies
from watchbill.model.policies import StepPolicy

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_a_changed_policy_is_a_line_with_who_when_and_why():
    one = StepPolicy("encode", "timeout 10m, retries 6", {"timeout": 600.0, "retries": 6}, "ann", "slow disks", NOON)
    header, line = drawn(list_of_policies([one])).splitlines()
    assert header.split() == ["STEP", "POLICY", "BY", "SINCE", "NOTE"]
    assert line.split(maxsplit=5)[:1] == ["encode"]
    for said in ("timeout 10m, retries 6", "ann", "2026-06-01 12:00:00Z", "slow disks"):
        assert said in line
    assert drawn(list_of_policies([])) == "all policies are as the code says"
