"""Uploads: a very large body is written in chunks, in transactions of their own, before the turn that refers to it.

No transaction is large, so other runs are written in between. See docs/design/uploads.md.
"""

from collections.abc import Awaitable, Callable

from watchbill.model.upload import Upload, Uploaded

Begin = Callable[[Upload], Awaitable[bool]]
WriteChunk = Callable[[Upload, int, bytes], Awaitable[bool]]


async def upload_in_chunks(
    upload: Upload, body: bytes, begin: Begin, write: WriteChunk, *, size: int
) -> Uploaded | None:
    """Write a body in chunks of a size; None when its term is over, or it was discarded meanwhile."""
    if not await begin(upload):
        return None
    chunks = 0
    for start in range(0, len(body), size):
        if not await write(upload, chunks, body[start : start + size]):
            return None
        chunks += 1
    return Uploaded(upload.id, size=len(body), chunks=chunks, head=body[: Uploaded.HEAD])
