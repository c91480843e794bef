"""``python -m lokl`` is the command ``lokl``."""

from lokl.cli.app import app

if __name__ == "__main__":
    app(prog_name="lokl")
