"""``python -m lokl`` is the command ``lokl``."""

from lokl.cli import main

if __name__ == "__main__":
    main()
