"""`python -m hedgerow` is the command `hedgerow`."""

from hedgerow.cli.app import main

if __name__ == "__main__":
    main()
