"""Logbooks: the last of what an attempt has said."""

from watchbill.flow.logbook import MOST, Logbook


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


def test_one_line_that_is_too_long_keeps_its_end():
    book = Logbook()
    book.write("x" * MOST + "end")
    assert book.text().endswith("xend")
    assert len(book.text()) <= MOST
