"""`python -m benchcheck` is `benchcheck`; Ctrl-C while the command line is still being loaded is one line, too."""

import sys

__all__ = ["main"]


def main() -> None:
    """Load the command line and run it."""
    try:
        from benchcheck.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("benchcheck: stopped. Nothing was begun.\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
