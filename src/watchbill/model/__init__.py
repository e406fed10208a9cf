"""MODEL: facts as frozen values. Nothing enters but errors and the clock's units; no I/O, no time of its own leaves."""
