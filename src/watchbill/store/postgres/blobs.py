"""Blobs: large bodies on their way into a statement, beside the rows that refer to them."""

from typing import NamedTuple

from watchbill.env import Env
from watchbill.model.upload import Uploaded
from watchbill.store.bodies import fits, reference


class Blob(NamedTuple):
    """One large body; `of` is the row that it goes with."""

    of: int
    fence: int
    run: int
    n: int
    body: bytes


class Blobs:
    """Collects the large bodies of one statement. Their numbers are made here: nobody has to be asked for the next."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self.found: list[Blob] = []
        self.uploaded: list[tuple[int, Uploaded]] = []  # with their runs: bodies that are in the store already

    def stored(self, body: bytes, *, run: int = 0, of: int = 0, fence: int = 0) -> bytes:
        """Give what the row stores: a small body itself, or a reference to a large one."""
        if fits(body):
            return body
        if isinstance(body, Uploaded):
            self.uploaded.append((run, body))
            return reference(body.id)
        n = self._env.new_id()
        self.found.append(Blob(of, fence, run, n, body))
        return reference(n)

    def stored_if_any(self, body: bytes | None, *, run: int = 0, of: int = 0, fence: int = 0) -> bytes | None:
        """The same for a body that may be missing."""
        return None if body is None else self.stored(body, run=run, of=of, fence=fence)

    def uploads(self) -> dict[str, object]:
        """Give the uploads that a turn takes, as its statement takes them."""
        return {
            "uploaded_runs": [run for run, _ in self.uploaded],
            "uploaded_ids": [body.id for _, body in self.uploaded],
            "uploaded_sizes": [body.size for _, body in self.uploaded],
            "uploaded_chunks": [body.chunks for _, body in self.uploaded],
        }

    def values(self) -> dict[str, object]:
        """Give the columns as a statement takes them."""
        return {
            "blob_ids": [blob.of for blob in self.found],
            "blob_fences": [blob.fence for blob in self.found],
            "blob_runs": [blob.run for blob in self.found],
            "blob_ns": [blob.n for blob in self.found],
            "blob_bodies": [blob.body for blob in self.found],
        }
