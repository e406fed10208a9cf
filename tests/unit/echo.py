"""Echo: a companion that answers backwards, and prints what nobody may take for an answer."""

import sys

from watchbill.env import answer_questions


def answer(question: bytes) -> bytes:
    """Give it backwards."""
    print("thinking", sys.stdin.read())
    return question[::-1]


if __name__ == "__main__":
    answer_questions(answer)
