"""Keys for tests: three of them, and one that bears the name of another."""

import base64


def a_key(id: str, fill: int) -> str:
    return f"{id}:{base64.b64encode(bytes([fill]) * 32).decode()}"


FIRST = a_key("k1", 1)
SECOND = a_key("k2", 2)
THIRD = a_key("k3", 3)
WRONG = a_key("k1", 9)
