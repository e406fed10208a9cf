"""Read by the interpreter before anything else, where PYTHONPATH names this folder: makes a process seem far away.

TRIAL_BOOT_ID: it says that it runs on another machine, so that nobody here can prove its death.
TRIAL_CLOCK_OFF: its wall clock is wrong by so many seconds.
"""

import os
import time

if boot_id := os.environ.get("TRIAL_BOOT_ID"):
    import watchbill.env

    watchbill.env._boot_id = lambda: boot_id  # type: ignore[assignment]

if seconds := os.environ.get("TRIAL_CLOCK_OFF"):
    off, true_time, true_time_ns = int(seconds), time.time, time.time_ns
    time.time = lambda: true_time() + off
    time.time_ns = lambda: true_time_ns() + off * 1_000_000_000
