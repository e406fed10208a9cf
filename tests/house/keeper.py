"""A program that serves a file and obeys lines: `python -m tests.house.keeper STORE`.

run ID     runs a workflow of one step to its end: says "done ID", or "failed KIND MESSAGE"
copy       copies the database and all files beside it in this process, and closes them: says "copied"
failed     waits until its components have ended by themselves, says "failed"
end        ends in good order
"""

import asyncio
import shutil
import sys
from pathlib import Path

from watchbill import App, StoreError

app = App(sys.argv[1])


@app.step
def double(n: int) -> int:
    return 2 * n


@app.workflow
async def work(n: int) -> int:
    return await double(n)


async def main() -> None:
    async with app.rooms():
        print("ready", flush=True)
        while (line := (await asyncio.to_thread(sys.stdin.readline)).split())[0] != "end":
            match line:
                case "run", id:
                    try:
                        await (await app.start(work, 1, id=id)).result()
                        print("done", id, flush=True)
                    except StoreError as error:
                        print("failed", type(error).__name__, error, flush=True)
                case ["copy"]:
                    file = Path(sys.argv[1].removeprefix("sqlite:///"))
                    for one in sorted(file.parent.glob(f"{file.name}*")):
                        if one.is_file():
                            shutil.copy(one, file.parent / f"copy-{one.name}")
                    print("copied", flush=True)
                case ["failed"]:
                    await app._hall.failed()  # type: ignore[attr-defined]
                    print("failed", flush=True)
                case _:
                    raise ValueError(line)


asyncio.run(main())
