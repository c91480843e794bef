"""The command ``lokl``, with one file for each subcommand."""


def main() -> None:
    """Run the command line."""
    from lokl.cli.app import app
    from lokl.cli.terminal import replace_unprintable, report_lost_output

    replace_unprintable()
    with report_lost_output():
        app(prog_name="lokl")
