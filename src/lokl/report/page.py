"""Rendering of a report as one HTML file that loads nothing from the network."""

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._exports import need
from lokl._files import replace_file
from lokl.explain.explanation import (
    DISAGREE,
    FAMILIAR,
    STATUS_TEXT,
    STATUSES,
    Explanation,
    class_codes,
)
from lokl.explain.reliability import reliability
from lokl.report import figures, formatting, sections
from lokl.report.content import Report, SampleMap, SupportSamples
from lokl.report.formatting import Formatter

_STYLES = ("page.css", "tables.css", "pictures.css")
_SCRIPTS = ("data.js", "tables.js", "choice.js", "glance.js", "maps.js", "card.js", "save.js")
_DIGITS = np.array(list("0123456789abcdefghijklmnopqrstuvwxyz"))
# Steps of packed shares, and of packed values over their range.
_SHARE_STEPS, _VALUE_STEPS = 1000, 40_000
# Neighbours of a sample that are listed.
_NEIGHBOURS = 3


def render(report: Report) -> str:
    """Return the page as text.

    Parameters
    ----------
    report : Report
        An explanation without samples is left out.

    Returns
    -------
    html : str
        A complete document with its style, script and data. It loads nothing from the network.

    See Also
    --------
    lokl.report.write : Writes a file.
    lokl.report.report_from_model : Makes the content.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.report import render, report_from_model
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = UniformMKLClassifier(kernels, C=10).fit(X[::2], y[::2])
    >>> report = report_from_model(model, X[1::2], y[1::2], title="Wine")
    >>> render(report).splitlines()[0]
    '<!doctype html>'
    """
    formatter, explanation = Formatter.of(report), report.explanation
    if explanation is not None and not len(explanation):
        explanation = None
    found = None if explanation is None else reliability(explanation)
    samples: dict[str, Any] = {}
    if explanation is not None:
        samples = sections.samples_section(report, explanation, formatter)
    script = '"use strict";(()=>{' + "".join(map(_template_file, _SCRIPTS)) + "})();"
    # The page allows its own script, by this checksum, and no other.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            formatter=formatter,
            explanation=explanation,
            samples=samples,
            sentences=sections.head_sentences(report, formatter, found),
            query_words=sections.QUERY_WORDS,
            state_texts=STATUS_TEXT,
            important=sections.columns_section(explanation),
            gene_sets=sections.gene_sets_section(report),
            glossary=list(sections.glossary(report, explanation)),
            leaderboard=sections.leaderboard_section(report, formatter),
            views=sections.views_section(report, formatter),
            survival=sections.survival_section(explanation),
            reliability=sections.reliability_section(report, formatter, found),
            style="".join(map(_template_file, _STYLES)) + figures.styles(len(report.classes)),
            script=script,
            digest=digest,
            data=_safe_json(_page_data(report, explanation, formatter, samples)),
        )
    )


def write(report: Report, path: str | Path) -> Path:
    """Write the page; an existing file is replaced only by a complete one.

    Parameters
    ----------
    report : Report
        Content of the page.
    path : str or Path
        File to write.

    Returns
    -------
    path : Path
        The written file.

    See Also
    --------
    lokl.report.render : Returns the text.
    lokl.report.report_from_model : Makes the content.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.report import report_from_model, write
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = UniformMKLClassifier(kernels, C=10).fit(X[::2], y[::2])
    >>> report = report_from_model(model, X[1::2], y[1::2], title="Wine")
    >>> with TemporaryDirectory() as folder:
    ...     name = write(report, Path(folder) / "report.html").name
    >>> name
    'report.html'
    """
    path = Path(path)
    replace_file(path, render(report).encode("utf-8"))
    return path


def _environment() -> Any:
    jinja2 = need("jinja2", "a report")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"figures": figures, "formatting": formatting, "isfinite": isfinite}
    return environment


def _template_file(name: str) -> str:
    return files("lokl.report").joinpath("templates", name).read_text(encoding="utf-8")


def _page_data(
    report: Report,
    explanation: Explanation | None,
    formatter: Formatter,
    samples: dict[str, Any],
) -> dict[str, Any]:
    """Return the data of the script; each column of numbers is packed into a string."""
    data: dict[str, Any] = {
        "classes": report.classes,
        "views": [view.name for view in report.views],
        "score": report.score_name,
        "ids": [],
    }
    if explanation is None or report.sample_map is None:
        return data
    support, similar = _support_among(report.sample_map, explanation)
    return {
        **data,
        **_leading_columns(explanation),
        "ids": explanation.ids,
        "weightName": samples["trust_name"],
        "valuePlaces": formatter.value_places,
        "contributionPlaces": formatter.contribution_places,
        "levels": figures.LEVELS,
        "colours": figures.COLOURS,
        "symbols": len(figures.SYMBOLS),
        "mostRows": figures.MOST_ROWS,
        "disagree": DISAGREE,
        "states": STATUSES,
        "stateTexts": [STATUS_TEXT[status] for status in STATUSES],
        "unit": explanation.unit,
        "columns": {
            **_packed_columns(explanation, similar, samples),
            **_packed_leading(explanation),
        },
        "support": support
        and {
            "ids": support.ids,
            "truth": _outcome_packer(explanation)(class_codes(support.truth, explanation.classes)),
        },
    }


def _support_among(
    similar: SampleMap, explanation: Explanation
) -> tuple[SupportSamples | None, SampleMap]:
    """Return support samples that have names of their own, and neighbours by position.

    If all support samples are among the explained ones, their names and truth are known.
    """
    support, truth = similar.support, explanation.truth
    row_of = {name: k for k, name in enumerate(explanation.ids)}
    if support is None or truth is None or not all(name in row_of for name in support.ids):
        return support, similar
    rows = [row_of[name] for name in support.ids]
    known = truth["time"] if explanation.is_survival else truth
    if not np.array_equal(np.asarray(support.truth), known[rows]):
        return support, similar
    neighbours = [[rows[j] for j in near] for near in similar.neighbours]
    return None, replace(similar, neighbours=neighbours)


def _packed_columns(
    explanation: Explanation, similar: SampleMap, samples: dict[str, Any]
) -> dict[str, Any]:
    """Return packed columns of values by sample, by sample and view, or by sample and class."""
    outcomes = _outcome_packer(explanation)
    support, status = similar.support, explanation.status
    evidence, decisive = explanation.alone_evidence, explanation.decisive
    learned, familiar = explanation.learned, explanation.familiarity
    without = None
    if decisive is not None and explanation.without is not None:
        without = class_codes(explanation.without, explanation.classes)
    unfamiliar = None
    if familiar is not None:
        unfamiliar = explanation.presence & (familiar < FAMILIAR)
    return {
        "truth": outcomes(explanation.truth_codes),
        "prediction": outcomes(explanation.predicted_codes),
        "runnerUp": None if explanation.is_regression else pack(explanation.runner_up_codes),
        "alone": outcomes(explanation.alone_codes),
        "probabilities": _pack_shares(explanation.probabilities),
        "trust": _pack_shares(explanation.trust_or_weights),
        "aloneProbability": _pack_shares(explanation.alone_probabilities),
        "disagreement": _pack_shares(explanation.disagreement),
        "similarity": support and _pack_shares(_padded(support.similarities)),
        "contributions": pack_values(explanation.contributions),
        "evidence": None if evidence is None else _pack_tenths(evidence),
        "baseValue": pack_values(explanation.base_values),
        "x": pack_values(samples["at"][:, 0]),
        "y": pack_values(samples["at"][:, 1]),
        "absent": pack(np.flatnonzero(~explanation.presence)),
        **_sparse("decisive", decisive, "without", without, outcomes),
        **_sparse("unfamiliar", unfamiliar, "familiarity", familiar, _pack_shares),
        "learned": pack([] if learned is None else np.flatnonzero(learned)),
        "status": None if status is None else pack(class_codes(status, STATUSES)),
        "sets": None if explanation.sets is None else outcomes(explanation.sets),
        "state": pack(samples["glance"]["state"]),
        "glance": pack(samples["glance"]["picture"].drawn),
        "lead": pack(samples["lead"]),
        "order": pack(samples["order"]),
        "rows": pack(samples["trust"]["rows"] if samples["trust"] else []),
        "drawn": pack(samples["drawn"]),
        "similar": pack(_padded(similar.neighbours)),
    }


def _leading_columns(explanation: Explanation) -> dict[str, Any]:
    """Return names and views of the columns that matter most for some sample."""
    found = explanation.columns
    if found is None:
        return {}
    used = np.unique(sections.leading_columns(found.values)).tolist()
    return {
        "columnNames": [found.columns[c] for c in used],
        "columnViews": [int(found.view[c]) for c in used],
    }


def _packed_leading(explanation: Explanation) -> dict[str, Any]:
    """Return the packed positions of these columns by sample, and their contributions."""
    found = explanation.columns
    if found is None:
        return {}
    leading = sections.leading_columns(found.values)
    _, position = np.unique(leading, return_inverse=True)
    values = np.take_along_axis(found.values, leading, axis=1)
    return {"leading": pack(position), "leadingValues": pack_values(values)}


def _sparse(
    name: str, chosen: Array | None, values_name: str, values: Array | None, packer: Any
) -> dict[str, Any]:
    """Return packed positions of some entries of a table, and packed values of these entries.

    Parameters
    ----------
    name, values_name : str
    chosen : bool array or None
    values : array or None
        Of the shape of `chosen`.
    packer : callable
    """
    if chosen is None:
        return {name: pack([])}
    positions = np.flatnonzero(chosen)
    packed = None if values is None else packer(np.asarray(values).ravel()[positions])
    return {name: pack(positions), values_name: packed}


def _pack_tenths(values: Array) -> dict[str, Any]:
    """Pack numbers that are shown with one decimal."""
    low = float(np.floor(np.nanmin(values, initial=0.0)))
    return pack(values, 10.0, low)


def _outcome_packer(explanation: Explanation) -> Callable[[Any], dict[str, Any]]:
    """Return the function that packs positions of classes, or targets."""
    return pack_values if explanation.is_regression else pack


def _padded(rows: list[list[Any]]) -> Array:
    n = _NEIGHBOURS
    return np.array([[*row[:n], *[np.nan] * (n - len(row))] for row in rows], dtype=float)


def pack(values: Any, per: float = 1.0, low: float = 0.0) -> dict[str, Any]:
    """Return numbers as text of fixed width to the base 36, so that any of them can be found.

    Parameters
    ----------
    values : array
    per : float
        Steps in 1: a number is stored as the number of steps from `low`.
    low : float
        Lower numbers, like NaN, become the largest number that fits, which means unknown.

    Returns
    -------
    column : dict
        "text", "width" of a number in it, "per", and "from", the lowest number.
    """
    steps = np.round((np.asarray(values, dtype=float).ravel() - low) * per)
    known = np.isfinite(steps) & (steps >= 0)
    width = 1
    while 36**width - 1 <= steps[known].max(initial=0.0):
        width += 1
    codes = np.where(known, steps, 36**width - 1).astype(np.int64)
    digits = [codes // 36**power % 36 for power in reversed(range(width))]
    text = "".join(_DIGITS[np.column_stack(digits)].ravel().tolist())
    return {"width": width, "per": per, "from": low, "text": text}


def pack_values(values: Any) -> dict[str, Any]:
    """Pack any numbers, in steps of a forty-thousandth of their range."""
    finite = np.asarray(values)[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    # Steps of a narrower range would have no finite reciprocal.
    per = _VALUE_STEPS / (high - low) if high - low > 1e-300 else 1.0
    return pack(values, per, low)


def _pack_shares(values: Any) -> dict[str, Any] | None:
    """Pack numbers between 0 and 1, in thousandths; None if all are unknown."""
    if values is None or not np.isfinite(values).any():
        return None
    return pack(np.clip(values, 0.0, 1.0), _SHARE_STEPS)


def _safe_json(data: Any) -> str:
    """Return JSON that cannot end the script element that contains it."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
