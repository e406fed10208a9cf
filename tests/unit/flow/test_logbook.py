"""Logbooks: the last of what an attempt has said, and how it gets there."""

import io
import logging
import sys
import threading
from collections.abc import Iterator

import pytest

from watchbill.flow.context import Attempt
from watchbill.flow.logbook import MOST, Logbook, Tee, keep_logs, keep_prints, log_of
from watchbill.flow.steps import Step, attempt_here
from watchbill.model.policy import Policy


def test_a_logbook_keeps_what_was_written():
    book = Logbook()
    book.write("one\n")
    book.write("two\n")
    assert book.text() == "one\ntwo\n"


def test_a_logbook_forgets_the_oldest_and_says_so():
    book = Logbook()
    for number in range(20_000):
        book.write(f"line {number}\n")
    text = book.text()
    assert text.startswith("...\n")
    assert text.endswith("line 19999\n")
    assert len(text) <= MOST + len("...\n")


def test_one_line_that_is_too_long_keeps_its_end_and_says_so():
    book = Logbook()
    book.write("x" * MOST + "end")
    assert book.text().endswith("xend")
    assert book.text().startswith("...\n")
    assert len(book.text()) <= MOST + len("...\n")


def test_nothing_costs_nothing():
    book = Logbook()
    for _ in range(1_000):
        book.write("")
    assert not book._lines


def test_half_a_secret_is_not_left_when_the_rest_is_cut_off():
    book = Logbook(("opensesame",))
    book.write("opensesame" + "x" * (MOST - 5))
    assert "sesame" not in book.text()
    assert "***" not in book.text()[:2]


def test_a_secret_in_pieces_is_found_too():
    book = Logbook(("opensesame",))
    book.write("open")
    book.write("sesame\n")
    assert book.text() == "***\n"


def test_many_threads_may_write_at_once():
    book, interval = Logbook(), sys.getswitchinterval()
    line = "x" * 1_000

    def write() -> None:
        for _ in range(2_000):
            book.write(line)

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=write) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(book.text()) == MOST // 1_000 * 1_000 + len("...\n")


# --- how it gets there


class Beneath(io.TextIOWrapper):
    """A file that remembers."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="latin-1", errors="backslashreplace", newline="\n")

    def said(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode("latin-1")


@pytest.fixture
def attempt() -> Iterator[Attempt]:
    """The attempt in which a test is."""
    step = Step(lambda: None, name="test")
    here = Attempt(step, (), {}, Policy(), ("n", "r", 1, "c", 0), 1)
    token = attempt_here.set(here)
    yield here
    attempt_here.reset(token)


@pytest.fixture
def keeping() -> Iterator[None]:
    end = keep_logs()
    yield
    end()


def kept(attempt: Attempt) -> str:
    return (log_of(attempt) or b"").decode()


def test_a_tee_is_what_lies_beneath_in_all_but_writing(attempt):
    beneath = Beneath()
    tee = Tee(beneath)
    print("seen", file=tee)
    assert beneath.said() == kept(attempt) == "seen\n"
    assert (tee.encoding, tee.errors, tee.newlines) == ("latin-1", "backslashreplace", None)
    assert tee.buffer is beneath.buffer
    assert tee.line_buffering is False
    tee.reconfigure(line_buffering=True)
    assert beneath.line_buffering is True
    with pytest.raises(AttributeError):
        tee.nothing_like_that  # noqa: B018
    with pytest.raises(TypeError):
        tee.write(b"bytes")  # type: ignore[arg-type]


def test_a_tee_that_is_forgotten_leaves_what_lies_beneath_open():
    beneath = Beneath()
    tee = Tee(beneath)
    tee.close()
    del tee
    beneath.write("still")
    assert beneath.said() == "still"


@pytest.mark.usefixtures("keeping")
def test_what_is_logged_is_kept_once_also_where_a_handler_prints_it(attempt):
    beneath = Beneath()
    logger = logging.getLogger("tests.logbook")
    handler = logging.StreamHandler(Tee(beneath))
    handler.setFormatter(logging.Formatter("ours: %(message)s"))
    logger.addHandler(handler)
    try:
        logger.warning("hear, %s", "hear")
        print("printed", file=handler.stream)
    finally:
        logger.removeHandler(handler)
    assert kept(attempt).count("hear, hear\n") == 1
    assert kept(attempt).endswith("printed\n")
    assert beneath.said() == "ours: hear, hear\nprinted\n"


@pytest.mark.usefixtures("keeping")
def test_a_filter_of_a_logger_counts_for_what_is_kept(attempt):
    logger = logging.getLogger("tests.logbook.filtered")
    logger.addFilter(lambda record: "secret" not in record.getMessage())
    logger.warning("a secret")
    logger.warning("no harm")
    assert "secret" not in kept(attempt)
    assert "no harm" in kept(attempt)


@pytest.mark.usefixtures("keeping")
def test_a_record_whose_arguments_do_not_fit_does_no_harm(attempt, monkeypatch):
    monkeypatch.setattr(logging, "raiseExceptions", False)
    logging.getLogger("tests.logbook").warning("%d", "x")
    assert "'%d' (TypeError)" in kept(attempt)


@pytest.mark.usefixtures("keeping")
def test_outside_of_attempts_nothing_is_kept(caplog):
    logging.getLogger("tests.logbook").warning("alone")
    assert "alone" in caplog.text


def test_attempt_that_is_silent_has_no_log(attempt):
    assert log_of(attempt) is None


def test_process_without_standard_files_keeps_no_prints(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    keep_prints()
    assert (sys.stdout, sys.stderr) == (None, None)
    monkeypatch.setattr(sys, "stdout", Beneath())
    monkeypatch.setattr(sys, "stderr", Beneath())
    keep_prints()
    assert isinstance(sys.stdout, Tee)
    assert isinstance(sys.stderr, Tee)


def test_tee_above_a_file_that_is_closed_flushes_nothing():
    beneath = Beneath()
    tee = Tee(beneath)
    beneath.close()
    tee.flush()
    assert beneath.closed
