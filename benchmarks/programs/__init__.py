"""One measured program per file: `measure(quick)` runs in a fresh process on a fresh store and gives its figures."""
