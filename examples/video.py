"""A film encoded in six chunks, of which one gets stuck: `python examples/video.py`.

The fast codec stops at 47 % of the third chunk and says nothing more, while its agent beats on. The attempt is found by
its stall, killed, goes on elsewhere from its last checkpoint, gets stuck again, and is tried with the safe codec. The
other chunks are not touched.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

from stage import perform, play

from watchbill import App, Retry, Switch, attempt

RECORD = Path(os.environ.get("WATCHBILL_STAGE", ".")) / "tried"
STUCK = 47
app = App()


@app.step(stall="1s", retry=Retry(1, backoff="100ms"), then=[Switch(codec="safe")])
def encode(chunk: int, codec: str = "fast") -> str:
    here = attempt()
    start = here.restored or 0
    with RECORD.open("a") as file:
        file.write(f"{chunk} {codec} {start} {os.getppid()}\n")
    for done in range(start, 100):
        if chunk == 3 and codec == "fast" and done == STUCK:
            while True:
                time.sleep(1)  # the encoder hangs; nobody raises anything, and the process is well
        here.checkpoint(done + 1)
        here.progress(done + 1, total=100, note=f"{codec} codec")
    return f"chunk-{chunk}.{codec}"


@app.workflow
async def film(chunks: int) -> list[str]:
    return await asyncio.gather(*(encode(chunk) for chunk in range(1, chunks + 1)))


def story() -> None:
    made = play(app, "a film of six chunks, of which the third gets stuck at 47 %", film, 6, id="film")
    tried = [line.split() for line in RECORD.read_text().splitlines()]
    third = [(codec, int(start), host) for chunk, codec, start, host in tried if chunk == "3"]
    others = [chunk for chunk, *_ in tried if chunk != "3"]
    print(f"  the third: {', '.join(f'{codec} from {start} %' for codec, start, _ in third)}; the others once each")
    if [(codec, start) for codec, start, _ in third] != [("fast", 0), ("fast", STUCK), ("safe", 0)]:
        sys.exit(f"the third chunk should have been moved, and then tried another way: {third}")
    if third[0][2] == third[1][2] or sorted(others) != ["1", "2", "4", "5", "6"]:
        sys.exit(f"it should have gone elsewhere, and left the others alone: {tried}")
    if made != [f"chunk-{chunk}.{'safe' if chunk == 3 else 'fast'}" for chunk in range(1, 7)]:
        sys.exit(f"that is no film: {made}")


if __name__ == "__main__":
    perform(__file__, story)
