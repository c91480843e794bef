"""What a model takes: its columns, their kinds and views."""

from dataclasses import dataclass
from typing import Any

from lokl._layers import layers_of
from lokl.tables.columns import NUMERIC
from lokl.tables.errors import TableError
from lokl.tables.preparation import TablePreparation


@dataclass(frozen=True)
class Schema:
    """Columns that a model knows, by view, and what is noted of ids and target in training."""

    views: dict[str, list[str]]
    kinds: dict[str, str]
    on: str | None = None
    target: str | None = None
    task: str | None = None
    positive: str | None = None


def schema_of(model: Any) -> Schema:
    """Return what a fitted model takes.

    Models of tables begin with a :class:`TablePreparation`. Others are known by the names of their
    columns, which all hold numbers.
    """
    first = model.steps[0][1] if hasattr(model, "steps") else model
    if isinstance(first, TablePreparation):
        # Two classes keep their names; of more, all but one were made one.
        known = first.prior_ if isinstance(first.prior_, dict) else {}
        many = f"not {first.positive}" in known
        noted = (first.on, first.target_name_, first.task, first.positive if many else None)
        return Schema(first.views_, first.kinds_, *noted)
    columns = getattr(model, "feature_names_in_", None)
    if columns is None:
        raise TableError(
            "the model was fitted to columns without names, so that those of a table cannot be "
            "matched; fit it to a data frame, or with `lokl fit`"
        )
    names = [str(column) for column in columns]
    return Schema(_views(model, names), dict.fromkeys(names, NUMERIC))


def places_in_model(model: Any) -> dict[str, list[int]] | None:
    """Return columns of each view as they come out of the preparation of a fitted model.

    None for models without one: each of their kernels is then a view.
    """
    first = model.steps[0][1] if hasattr(model, "steps") else model
    return first.prepared_views_ if isinstance(first, TablePreparation) else None


def _views(model: Any, names: list[str]) -> dict[str, list[str]]:
    for own in layers_of(model):
        kernels = getattr(own, "kernels_", None)
        if kernels and len(kernels) > 1 and all(kernel.is_view for kernel in kernels):
            used = [kernel.columns_used() for kernel in kernels]
            return {
                name: [names[column] for column in columns]
                for name, columns in zip(own.kernel_names_, used, strict=True)
            }
    return {"all columns": names}
