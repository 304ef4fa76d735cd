"""``python -m stepfork``. Knows where the command line begins, and nothing else."""

from stepfork.cli import main

if __name__ == "__main__":
    main()
