"""``lokl explain``: why a model says what it says about one sample."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from lokl.cli.given import AsJson, Data, Delimiter, ModelFile, Na, On, explained, tell

# Signs of the longest bar.
_LONGEST = 12

Sample = Annotated[str, typer.Option(help="Id of the sample.", show_default=False)]


def explain(
    model: ModelFile,
    data: Data,
    sample: Sample,
    on: On = None,
    na: Na = None,
    delimiter: Delimiter = "",
    as_json: AsJson = False,
) -> None:
    """Tell about one sample: what each view says, how far it is trusted, and where it pulls.

    Example: lokl explain ill.lokl blood.csv pulse.csv --sample P017
    """
    with explained():
        from lokl.files import load
        from lokl.tables.answers import story
        from lokl.tables.new import read_new
        from lokl.tables.schema import schema_of

        fitted = load(model)
        table = read_new(data, schema_of(fitted), on=on, na=na or (), delimiter=delimiter)
        tell(table.notes)
        told = story(fitted, table, sample)
    if as_json:
        typer.echo(json.dumps(asdict(told), indent=1))
        return
    typer.echo(_headline(told))
    for line in _voices(told.voices):
        typer.echo(f"  {line}")
    if told.disagreement is not None and told.voices:
        typer.echo(f"views disagree by {told.disagreement:.2f} (0 not at all, 1 entirely)")


def _headline(told: Any) -> str:
    said = f"{told.prediction:.6g}" if isinstance(told.prediction, float) else str(told.prediction)
    if not told.probability:
        return f"{told.name}: {said}"
    others = ", ".join(f"{c} {p:.2f}" for c, p in told.probability.items() if c != told.prediction)
    return f"{told.name}: {said}, probability {told.probability[told.prediction]:.2f} ({others})"


def _voices(voices: tuple[Any, ...]) -> list[str]:
    width = max((len(voice.view) for voice in voices), default=0)
    most = max((voice.pull or 0.0 for voice in voices), default=0.0) or 1.0
    says = [_says(voice) for voice in voices]
    wide = max(map(len, says), default=0)
    lines = []
    for voice, text in zip(voices, says, strict=True):
        line = f"{voice.view:<{width}}  {text:<{wide}}"
        if voice.pull is not None:
            bar = "=" * round(_LONGEST * voice.pull / most)
            line += f"  trust {voice.trust:.2f}  pulls {bar:<{_LONGEST}} towards {voice.towards}"
        lines.append(line.rstrip())
    return lines


def _says(voice: Any) -> str:
    if voice.pull is None:
        return "is missing"
    if voice.probability is None:
        return f"says {voice.says:.4g}" if isinstance(voice.says, float) else f"says {voice.says}"
    return f"says {voice.says} {voice.probability:.2f}"
