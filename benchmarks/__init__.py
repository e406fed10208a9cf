"""Our own numbers, and a rival beside us: `make bench`, or `python -m benchmarks [name...] [--quick]`."""
