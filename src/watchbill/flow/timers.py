"""Sleep: durable inside a workflow, plain outside."""

from watchbill.clock import SECOND
from watchbill.env import pause
from watchbill.model.duration import Duration, to_micros


async def sleep(duration: Duration) -> None:
    """Sleep; inside a workflow the time is the journal's, and the sleep survives the process."""
    await pause(to_micros(duration, what="sleep()") / SECOND)
