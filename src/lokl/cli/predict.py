"""``lokl predict``: what a model says about new samples."""

import csv
import json
import sys

import typer

from lokl.cli.given import AsJson, Data, Delimiter, ModelFile, Na, On, explained, tell


def predict(
    model: ModelFile,
    data: Data,
    on: On = None,
    na: Na = None,
    delimiter: Delimiter = "",
    as_json: AsJson = False,
) -> None:
    """Predict samples of tables, as CSV on standard output.

    For each sample: id, prediction, the probability of each class, and how far each view is
    trusted. Columns are matched by name; views may be absent.

    Example: lokl predict ill.lokl new_blood.csv > predictions.csv
    """
    with explained():
        from lokl.files import load
        from lokl.tables.answers import answers
        from lokl.tables.new import read_new
        from lokl.tables.schema import schema_of

        fitted = load(model)
        table = read_new(data, schema_of(fitted), on=on, na=na or (), delimiter=delimiter)
        tell(table.notes)
        records = answers(fitted, table).records()
    if as_json:
        typer.echo(json.dumps(records, indent=1))
        return
    writer = csv.DictWriter(sys.stdout, list(records[0]), lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in record.items()})
