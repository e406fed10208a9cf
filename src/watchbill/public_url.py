"""The part of an address that may be shown. The rest of a webhook's address is often a secret."""

from typing import Final
from urllib.parse import urlsplit

WEB: Final = ("http", "https")
REST: Final = "..."


def is_web(url: str) -> bool:
    """True for http and https addresses; all others are addresses of apprise."""
    return url.partition("://")[0].lower() in WEB


def public_part(url: str) -> str:
    """Give scheme and host of a web address, and only the scheme of any other; the rest becomes `...`."""
    scheme, separator, rest = url.partition("://")
    if not separator or not scheme.isascii() or not scheme.replace("+", "").replace("-", "").replace(".", "").isalnum():
        return REST
    scheme = scheme.lower()
    if scheme not in WEB:
        return f"{scheme}://{REST}"
    try:
        host = urlsplit(url).hostname
    except ValueError:  # for example an IPv6 address without its closing bracket
        host = None
    if not host:
        return f"{scheme}://{REST}"
    if ":" in host:
        host = f"[{host}]"
    has_more = rest.rstrip("/").lower() != host
    return f"{scheme}://{host}/{REST}" if has_more else f"{scheme}://{host}"
