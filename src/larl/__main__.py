"""`python -m larl` is the command `larl`."""

from larl.cli import main

if __name__ == "__main__":
    main()
