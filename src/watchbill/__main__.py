"""`python -m watchbill`: the command line, for whoever has no script on the PATH."""

from watchbill.cli.main import main

if __name__ == "__main__":
    main()
