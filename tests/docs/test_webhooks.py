"""The snippet of docs/webhooks.md verifies what Watchbill posts."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.rooms.listener import Listener
from watchbill.posting import post

PAGE = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text()
SECRET = "whsec_bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3"
OTHER = "whsec_b2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xk"


def test_snippet_accepts_genuine_messages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    [snippet] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(snippet, names)
    verify, listener = names["verify"], Listener()
    monkeypatch.setenv("WATCHBILL_SECRET", f"{SECRET},{OTHER}")
    post(listener.url, "run_1f", '{"n": 1}')
    [(sent, body)] = listener.heard
    headers = {name.lower(): value for name, value in sent.items()}
    assert verify(headers, body, SECRET) == "run_1f"
    assert verify(headers, body, OTHER) == "run_1f"
    for change in ({"webhook-id": "run_2"}, {"webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}):
        with pytest.raises(ValueError, match="no signature fits"):
            verify({**headers, **change}, body, SECRET)
    with pytest.raises(ValueError, match="no signature fits"):
        verify(headers, body + b" ", SECRET)
    with pytest.raises(ValueError, match="too old"):
        verify({**headers, "webhook-timestamp": "1"}, body, SECRET)
