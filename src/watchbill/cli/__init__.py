"""CLI: the `watchbill` command. Words come in and are parsed, text goes out, where what users stored is harmless."""
