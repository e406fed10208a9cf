"""What a host knows of an attempt in a worker."""

from watchbill.agent.remote import Remote
from watchbill.errors import AttemptLostError
from watchbill.flow.context import Checkpoint, Finishing
from watchbill.flow.messages import Order
from watchbill.model.policy import Policy


def a_remote() -> Remote:
    order = Order(1, "charge", b"[1]", b"{}", ("default", "o-1", 0, "charge", 9), 5, 1, 0, None, 7, 0, 0)
    return Remote(7, order, Policy(), alone=False)


def test_progress_that_nobody_has_heard_is_said_again_and_an_increase_stays_one() -> None:
    remote = a_remote()
    remote.move(b"1", increased=True)
    body, increased = _taken(remote)
    remote.put_back_progress(body, increased=increased)
    assert _taken(remote) == (b"1", True)
    assert remote.take_progress() is None


def test_newer_progress_counts_and_what_it_had_increased_before_is_not_forgotten() -> None:
    remote = a_remote()
    remote.move(b"1", increased=True)
    before = _taken(remote)
    remote.move(b"a note", increased=False)
    remote.put_back_progress(before[0], increased=before[1])
    assert _taken(remote) == (b"a note", True)


def _taken(remote: Remote) -> tuple[bytes, bool]:
    taken = remote.take_progress()
    assert taken is not None
    return taken


def test_attempt_that_is_lost_tells_whoever_waits_and_what_was_said_first_counts() -> None:
    remote, written, saved, finishing = a_remote(), Checkpoint(b"1"), Checkpoint(b"2"), Finishing(b"3")
    written.settle()
    remote.save(written)
    remote.save(saved)
    remote.finishing = finishing
    remote.lose()
    assert written.written.exception() is None
    assert isinstance(saved.written.exception(), AttemptLostError)
    lost = finishing.plan.exception()
    assert isinstance(lost, AttemptLostError)
    finishing.settle(ValueError("later"))
    assert finishing.plan.exception() is lost
    remote.finishing = None
    remote.lose()  # nobody waits any more
