"""A film encoded in six chunks, of which one gets stuck: `python examples/video.py`.

The fast codec stops at 47 % of the third chunk and says nothing more, while its agent beats on. The attempt is found by
its stall, its process is killed, and it goes on elsewhere from its last checkpoint; it gets stuck again, and is tried
with the safe codec. The other chunks are not touched.
"""

import asyncio
import json
import os
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from stage import Cure, cost, gone, perform, play, should, summary, until

from watchbill import App, Retry, Switch, attempt

RECORD = Path(os.environ.get("WATCHBILL_STAGE", ".")) / "tried"
STUCK = 47
app = App()


class Try(NamedTuple):
    """One line of the encoder's own record of what really ran, and where."""

    chunk: int
    codec: str
    start: int  # percent
    process: int
    agent: int  # its process, that of the encoder's parent


@app.step(stall="1s", retry=Retry(1, backoff="100ms"), then=[Switch(codec="safe")])
def encode(chunk: int, codec: str = "fast") -> str:
    here = attempt()
    start = here.restored or 0
    with RECORD.open("a") as file:
        file.write(json.dumps(Try(chunk, codec, start, os.getpid(), os.getppid())) + "\n")
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
    made = play(app, "six chunks, of which the third gets stuck at 47 %", film, 6, id="film")
    run = app.sync.handle("film")
    tried = [Try(*json.loads(line)) for line in RECORD.read_text().splitlines()]
    third = [one for one in tried if one.chunk == 3]
    others = [one for one in tried if one.chunk != 3]
    print(f"  the third: {', '.join(f'{one.codec} from {one.start} %' for one in third)}")
    should(
        [(one.codec, one.start) for one in third] == [("fast", 0), ("fast", STUCK), ("safe", 0)],
        f"the third chunk goes on from its checkpoint, and is then tried another way: {third}",
    )
    first, second, last = third
    for stuck in (first, second):
        until(partial(gone, stuck.process), f"process {stuck.process} is stuck, and should have been killed")
    should(not gone(first.agent), "only the process that was stuck is killed, not its agent")
    should(first.agent != second.agent, f"the second attempt should have been elsewhere: {third}")
    should(last.process not in (first.process, second.process), f"the third should have a process of its own: {third}")
    print(f"  processes {first.process} and {second.process} are gone; the second attempt was at the other agent")
    causes = [one.cause for call in run.status().steps if call.key == "encode.3" for one in call.attempts]
    should(causes == ["stalled", "stalled", None], f"it should have been found by its stall, twice: {causes}")
    should(sorted(one.chunk for one in others) == [1, 2, 4, 5, 6], f"the others are not touched: {others}")
    for call in run.status().steps:
        if call.key != "encode.3":
            should(len(call.attempts) == 1, f"{call.key} should have had one attempt")
    should(made == [f"chunk-{chunk}.{'safe' if chunk == 3 else 'fast'}" for chunk in range(1, 7)], f"no film: {made}")
    summary([
        Cure("an encoder hangs at 47 %, while its agent beats", "no progress for 1 s: stalled",
             f"its process is killed; at the other agent, from {STUCK} % on", "1 attempt, nothing encoded twice"),
        Cure("it hangs again", "no progress for 1 s: stalled", "killed; with the safe codec, from the beginning",
             f"in all {cost(run, 'encode.3')}"),
    ])  # fmt: skip
    print("\nthe film is whole; the other five chunks were encoded once each")


if __name__ == "__main__":
    perform(__file__, story)
