"""Charts of the benchmarks, drawn from the tables on the pages whenever the pages are built."""

import re
from pathlib import Path

import gallery_style
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
OURS, PEER = gallery_style.COLOURS[:2]


def rows_of(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table on a page whose header contains `heading`."""
    lines = iter((HERE / page).read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.startswith("|") and heading in line:
            next(lines)
            break
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([re.sub(r"[`*]", "", cell).strip() for cell in line.split("|")[1:-1]])
    return rows


def number(cell: str) -> float:
    """Return the first number of a cell."""
    found = re.search(r"[-+]?[\d,]*\.?\d+", cell)
    assert found, cell
    return float(found.group().replace(",", ""))


def speed() -> plt.Figure:
    rows = rows_of("benchmarks.md", "times as fast")[::-1]
    figure, axes = plt.subplots(figsize=(8, 4.2))
    ratios = [number(row[4]) for row in rows]
    lengths = [ratio - 1 for ratio in ratios]
    colours = [OURS if ratio > 1 else PEER for ratio in ratios]
    axes.barh(range(len(rows)), lengths, left=1, color=colours)
    for place, ratio in enumerate(ratios):
        axes.text(max(ratio, 1), place, f" {ratio:g}", verticalalignment="center")
    peers = [re.split(r" [\d.]+ m?s$", row[3])[0] for row in rows]
    tasks = [f"{row[0]} ({peer})" for row, peer in zip(rows, peers, strict=True)]
    axes.set_yticks(range(len(rows)), tasks)
    axes.set_xscale("log")
    axes.set_xlim(0.4, 100)
    axes.set_xticks([0.5, 1, 10, 100], ["0.5", "1", "10", "100"])
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("times as fast as the peer")
    return figure


def trust_gain() -> plt.Figure:
    rows = {row[0]: row[1:] for row in rows_of("benchmarks.md", "clean | conflict")}
    figure, axes = plt.subplots(figsize=(6.4, 3))
    cases = ["clean", "conflict", "swap", "noise", "missing"]
    for name, colour, shift in (("UNIFORM", OURS, -0.2), ("stacking", PEER, 0.2)):
        gains = [number(cell) for cell in rows[f"over {name}, points"]]
        places = [place + shift for place in range(len(cases))]
        bars = axes.bar(places, gains, width=0.36, color=colour, label=f"over {name}")
        axes.bar_label(bars, [f"{gain:+.1f}" for gain in gains])
    axes.set_xticks(range(len(cases)), cases)
    axes.set_ylim(top=11)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_ylabel("gain of the trusted vote, points")
    axes.legend(loc="upper left")
    return figure


def many_rows() -> plt.Figure:
    figure, axes = plt.subplots(figsize=(6.8, 3.6))
    for row in rows_of("results/benchmarks/many_rows.md", "prediction of 116,202 rows"):
        seconds, accuracy = number(row[1]), number(row[3])
        learned = any(word in row[0] for word in ("RBF", "same", "width", "feature"))
        axes.plot(seconds, accuracy, "o" if learned else "s", color=OURS if learned else PEER)
        if row[0].startswith(("one", "feature")) or not learned:
            name = re.split(r" \(|, gamma|, 500|, 100", row[0])[0]
            axes.annotate(name, (seconds, accuracy), xytext=(6, 3), textcoords="offset points")
    axes.set_xscale("log")
    axes.set_xlim(right=2000)
    axes.set_xlabel("fit, seconds (blue: regions of lokl)")
    axes.set_ylabel("test accuracy, %")
    return figure


def ladder(steps: list[tuple[str, str]], last: str) -> plt.Figure:
    """Draw questions below each other, with the answer to each on its right."""
    figure, axes = plt.subplots(figsize=(8.4, 0.95 * len(steps) + 0.6))
    axes.set_axis_off()
    axes.set_xlim(0, 10)
    axes.set_ylim(-len(steps) - 0.4, 0.5)
    box = {"boxstyle": "round,pad=0.5", "facecolor": "white"}
    arrow = {"arrowstyle": "-|>", "color": "0.3"}

    def write(x: float, y: float, text: str, colour: str, **style: str) -> None:
        axes.text(x, y, text, va="center", bbox={**box, "edgecolor": colour}, **style)

    for place, (question, answer) in enumerate(steps):
        axes.annotate("", (5.4, -place), (2.4, -place), arrowprops=arrow)
        axes.text(5.1, 0.08 - place, "yes", ha="center", va="bottom")
        axes.annotate("", (2.4, -place - 0.66), (2.4, -place), arrowprops=arrow)
        axes.text(2.55, -place - 0.5, "no", va="center")
        write(2.4, -place, question, PEER, ha="center")
        write(5.6, -place, answer, OURS, ha="left", weight="bold")
    write(2.4, -len(steps), last, OURS, ha="center", weight="bold")
    return figure


def which_method() -> plt.Figure:
    steps = [
        ("more than 20,000 rows?", 'regions or solver="primal",\nwith any method below'),
        ("one table?", "AutoMKL"),
        ("some tables wrong or noisy\nfor single samples?", "TrustedVote"),
        ("many kernels,\nmost of them useless?", "SimpleMKL, LpMKL"),
        ("does the right kernel\ndepend on the sample?", "CLMKL, LMKL"),
    ]
    return ladder(steps, "UniformMKL, one kernel for each table")


def which_kernel() -> plt.Figure:
    steps = [
        ("strings, graphs or\na similarity of your own?", "precomputed, Callable"),
        ("histograms, or counts of words?", "Chi2, Cosine, Laplacian"),
        ("many more columns\nthan samples?", "Linear"),
        ("outliers, or columns\nwithout information?", "Laplacian"),
        ("effects of single columns\nthat add up?", "AdditiveLaplacian"),
    ]
    return ladder(steps, "RBF on standardised columns")


def draw_all(folder: Path) -> None:
    for chart in (speed, trust_gain, many_rows, which_method, which_kernel):
        gallery_style.reset({}, "")
        figure = chart()
        figure.savefig(folder / f"{chart.__name__}.svg", metadata={"Date": None})
        plt.close(figure)
    plt.rcdefaults()
