"""The command ``lokl``: one short file for each subcommand."""


def main() -> None:
    """Run the command line."""
    from lokl.cli.app import app

    app()
