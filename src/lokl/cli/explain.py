"""``lokl explain``: why a model says what it says."""

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lokl.cli.options import AsJson, Data, Delimiter, ModelFile, Na, On, explained, tell
from lokl.cli.terminal import stop

# Signs of the longest bar.
_LONGEST = 10
# Other classes that are named.
_OTHERS = 3
# Novelty from which on a sample is unlike those of training.
_NOVEL = 0.3

Sample = Annotated[str | None, typer.Option(help="Id of the sample to tell about.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="File for the report about all samples.")
]
Target = Annotated[
    str | None,
    typer.Option(help="Column of what is known of the samples, or FILE:COLUMN, for the report."),
]


def explain(
    model: ModelFile,
    data: Data,
    sample: Sample = None,
    output: Output = None,
    target: Target = None,
    on: On = None,
    na: Na = None,
    delimiter: Delimiter = "",
    as_json: AsJson = False,
) -> None:
    """Tell what each view says about samples, how far it is trusted, and where it pulls.

    --sample tells about one sample in the terminal, --output writes a report about all of them.

    Example: lokl explain ill.lokl blood.csv pulse.csv --sample P017 -o report.html
    """
    if sample is None and output is None:
        stop("lokl: tell about whom? Give --sample ID, --output report.html, or both", 2)
    with explained():
        from lokl._files import check_writable
        from lokl.persistence import load
        from lokl.tables.answers import story
        from lokl.tables.prediction_input import read_new
        from lokl.tables.preparation import schema_of

        if output is not None:
            check_writable(output)
        fitted = load(model)
        how: dict[str, Any] = {"on": on, "na": na or (), "delimiter": delimiter, "target": target}
        table = read_new(data, schema_of(fitted), **how)
        tell(table.notes)
        told = None if sample is None else story(fitted, table, sample)
        if output is not None:
            _write_report(fitted, table, model, data, output)
    if told is not None:
        lines = [json.dumps(asdict(told), indent=1)] if as_json else story_lines(told)
        typer.echo("\n".join(lines))
    if output is not None and not as_json:
        typer.echo(str(output))


def _write_report(fitted: Any, table: Any, model: Path, data: list[str], output: Path) -> None:
    from lokl.report import write
    from lokl.study.outputs import report_about

    again = shlex.join(["lokl", "explain", str(model), *data, "-o", str(output)])
    write(report_about(fitted, table, model.name, again), output)


def story_lines(told: Any) -> list[str]:
    """Return what is told about one sample."""
    lines = [_headline(told)]
    width = max([len(voice.view) for voice in told.voices] + [len("prior")])
    if told.prior is not None:
        lines.append(f"  {'prior':<{width}}  {_prior(told)}")
    lines += [f"  {line}" for line in _voices(told.voices, width)]
    if told.disagreement is not None:
        lines.append(f"views disagree by {told.disagreement:.2f} (0 not at all, 1 entirely)")
    for voice in told.voices:
        if voice.novelty is not None and voice.novelty >= _NOVEL:
            why = f"novelty {voice.novelty:.2f}"
            lines.append(f"{voice.view} is unlike what it was trained on ({why})")
    if told.alike:
        near = ", ".join(f"{own.name} ({_value(own.prediction)})" for own in told.alike)
        lines.append(f"most like: {near}")
    return lines


def _headline(told: Any) -> str:
    said = _value(told.prediction)
    if not told.probability:
        return f"{told.name}: {said}"
    left = {label: chance for label, chance in told.probability.items() if label != told.prediction}
    others = ", ".join(f"{label} {chance:.2f}" for label, chance in list(left.items())[:_OTHERS])
    if len(left) > _OTHERS:
        others += f", {len(left) - _OTHERS} more"
    return f"{told.name}: {said}, probability {told.probability[told.prediction]:.2f} ({others})"


def _prior(told: Any) -> str:
    if not told.probability:
        return f"mean {told.prior:.4g}"
    return f"{told.prediction} {100 * told.prior:.0f} %"


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _voices(voices: tuple[Any, ...], width: int) -> list[str]:
    most = max((voice.pull or 0.0 for voice in voices), default=0.0) or 1.0
    says = [_says(voice) for voice in voices]
    wide = max(map(len, says), default=0)
    lines = []
    for voice, text in zip(voices, says, strict=True):
        line = f"{voice.view:<{width}}  {text:<{wide}}"
        if voice.pull is not None:
            bar = "▏" * round(_LONGEST * voice.pull / most)
            line += f"  trust {voice.trust:.2f}  pulls {bar:<{_LONGEST}} towards {voice.towards}"
        lines.append(line.rstrip())
    return lines


def _says(voice: Any) -> str:
    if voice.pull is None:
        return "is missing"
    if voice.says is None:
        return "says nothing"
    if voice.probability is None:
        return f"says {_value(voice.says)}"
    return f"says {voice.says} {voice.probability:.2f}"
