"""A program that does as it is told, by a line on its standard input."""

import atexit
import os
import sys
import threading
import time

import watchbill


def describe() -> None:
    print(os.getpid(), os.getpgrp(), os.getsid(0), os.getcwd(), os.environ.get("TOLD"), sys.argv[1:], flush=True)


def talk_later() -> None:
    time.sleep(0.05)  # the main thread has ended by then
    print("in a thread")


def end_late() -> None:
    """End after a thread and what was left for the end."""
    atexit.register(print, "at the end")
    threading.Thread(target=talk_later).start()


def main() -> None:
    for line in sys.stdin:
        match line.split():
            case ["describe"]:
                describe()
            case ["raise"]:
                raise ValueError(f"as I was told by {__name__}, with {watchbill.__name__}")
            case ["exit", code]:
                sys.exit(int(code))
            case ["end", "late"]:
                return end_late()
            case ["wait"]:
                print("waiting", flush=True)
                time.sleep(600)
    return None


if __name__ == "__main__":
    main()
