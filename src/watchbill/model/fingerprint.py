"""Fingerprint: by what failures are alike. What differs from run to run in a message is blotted out of it. Pure."""

import re
from typing import Final

LONGEST: Final = 2_000  # characters of a message that are looked at: what comes later tells nothing new

# In this order: a path may hold numbers, and a quoted value may hold a path.
_BLOTS: Final = (
    (re.compile(r"(?<!\w)('(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|`[^`\n]*`)(?!\w)"), "'…'"),
    (re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://\S+"), "<address>"),
    (re.compile(r"(?<![\w.])(?:[A-Za-z]:)?(?:\.{0,2}[/\\][\w.@%+~-]+){2,}[/\\]?|(?<![\w.])[/\\][\w.@%+~-]+"), "<path>"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b0[xX][0-9a-fA-F]+\b"), "<hex>"),
    (re.compile(r"\b(?=[0-9a-fA-F]*[0-9])(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{6,}\b"), "<hex>"),
    (re.compile(r"\b(?=[A-Za-z_]*[0-9])(?=[0-9]*[A-Za-z_])[A-Za-z0-9_]+\b"), "<id>"),
    (re.compile(r"[-+]?\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?"), "<number>"),
    (re.compile(r"\s+"), " "),
)


def blotted(message: str) -> str:
    """Give a message without what may differ between failures that are alike: values, numbers, ids, paths."""
    text = message[:LONGEST]
    for pattern, blot in _BLOTS:
        text = pattern.sub(blot, text)
    return text.strip()


def fingerprint(step: str, why: str, type: str, message: str, group: str = "") -> str:
    """Give what failures have in common that have one cause, as a short text that is the same in every process."""
    import hashlib  # takes longer to import than most of what we need

    told = "\0".join((step, why, group, type, blotted(message)))
    return hashlib.blake2b(told.encode(errors="replace"), digest_size=6).hexdigest()
