"""`python -m benchcheck` is `benchcheck`."""

from benchcheck.cli import main

if __name__ == "__main__":
    main()
