"""Silent: a companion that is asked and never answers."""

import sys

if __name__ == "__main__":
    sys.stdin.buffer.read()
