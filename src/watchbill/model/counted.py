"""Counted: numbers with their nouns, in messages for people. Pure."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write a number and its noun in the right form: "1 run", "2 runs"."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def used_up(retries: int) -> str:
    """Report that no retry is left of so many."""
    match retries:
        case 0:
            return "no retry is allowed"
        case 1:
            return "its only retry is used up"
        case _:
            return f"all {retries:,} retries are used up"


def are(number: int) -> str:
    """Give the verb for so many things: "1 run is open", "2 runs are open"."""
    return "is" if number == 1 else "are"
