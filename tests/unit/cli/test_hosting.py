"""What an operator says of an agent, read."""

from typing import Any

import pytest

from watchbill.app.host import Employment
from watchbill.cli.hosting import employment
from watchbill.clock import SECOND
from watchbill.errors import InvalidOptionError
from watchbill.model.profile import LONGEST_LEASE


def wanted(**options: Any) -> Employment:
    said: dict[str, Any] = {"needs": "", "region": "", "profile": "critical", "slots": None, "workers": None}
    said |= {"beat": None, "grace": None, "name": "a", "recycle_after": None, "recycle_megabytes": None}
    return employment(**said | options)


def test_a_lease_is_four_beats_and_none_is_longer_than_others_wait_for() -> None:
    assert (wanted(beat="2s").beat, wanted(beat="2s").lease) == (2 * SECOND, 8 * SECOND)
    assert wanted(beat="22500ms").lease == LONGEST_LEASE
    assert wanted(profile="batch").lease == LONGEST_LEASE
    for beat in ("22501ms", "60s"):
        with pytest.raises(InvalidOptionError, match=r"--beat must be at most 22\.5s, got .* give --profile batch"):
            wanted(beat=beat)
