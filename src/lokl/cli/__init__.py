"""The command ``lokl``: one short file for each subcommand."""


def main() -> None:
    """Run the command line."""
    from lokl.cli.app import app
    from lokl.cli.terminal import explain_lost_output, print_what_can_be_printed

    print_what_can_be_printed()
    with explain_lost_output():
        app(prog_name="lokl")
