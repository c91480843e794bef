"""The command ``lokl``."""


def main() -> None:
    """Run the command line."""
    from lokl.cli.app import app
    from lokl.cli.terminal import end_like_interrupt, replace_unprintable, report_lost_output

    end_like_interrupt()
    replace_unprintable()
    with report_lost_output():
        app(prog_name="lokl")
