"""The command `watchbill` on uvloop: `python -m tests.house.on_uvloop agent ...`."""

import asyncio

import uvloop

from watchbill.cli.main import main

if __name__ == "__main__":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    main()
