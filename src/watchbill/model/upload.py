"""Upload: a very large body that is written in chunks, before the turn that refers to it."""

from typing import Final, NamedTuple


class Upload(NamedTuple):
    """A large body of a run on its way into the store, under the term of the run's shard."""

    run: int
    id: int  # drawn by the scheduler
    shard: int
    owner: int
    term: int


class Uploaded(bytes):
    """Stands in a turn for a large body that is in the store already, in chunks.

    It begins like a reference to a blob, so it never fits into a row: only the path of large bodies recognises it.
    """

    HEAD: Final = 512  # bytes: the codec finds the key and the nonce of a sealed body in them

    id: int  # of the upload
    size: int  # bytes of the whole body
    chunks: int
    head: bytes  # the first bytes of the body, as stored

    def __new__(cls, id: int, *, size: int, chunks: int, head: bytes) -> "Uploaded":
        """Stand for an upload that is complete."""
        self = super().__new__(cls, b"\x00upload %d" % id)
        self.id, self.size, self.chunks, self.head = id, size, chunks, head
        return self
