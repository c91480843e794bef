"""Run all benchmarks, or those named, each in its own process."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.common import console, machine, parser, show_machine, write_json

NAMES = (
    "svc_a9a",
    "svr_a9a",
    "laplacian",
    "mix_rows",
    "many_sets",
    "cliffs",
    "memory",
    "start_up",
    "report_page",
    "ldmkl",
    "localized",
    "accuracy",
    "multiview",
    "trust",
    "trust_time",
    "squared",
    "ldmkl_settings",
    "ldmkl_tolerance",
    "simplemkl",
    "mklpy",
    "mwu",
    "search",
    "search_small",
    "search_methods",
    "search_large",
    "auto_large",
    "tabular",
    "uci",
    "survival",
    "columns",
    "gene_sets",
    "coverage",
    "regions",
    "millions",
    "dask_regions",
    "low_rank",
    "runner",
)


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    arguments.add_argument("--list", action="store_true", help="list the benchmarks and exit")
    options = arguments.parse_args()
    if options.list:
        for name in NAMES:
            source = Path(__file__).with_name(f"{name}.py").read_text()
            console.print(f"{name:10} {source.splitlines()[0].strip(chr(34))}")
        return 0
    unknown = set(options.names) - set(NAMES)
    if unknown:
        arguments.error(f"unknown {', '.join(sorted(unknown))}; choose from {', '.join(NAMES)}")
    if not options.bare:
        show_machine()
    codes, records = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or NAMES:
            path = Path(folder, f"{name}.json")
            command = [sys.executable, "-m", f"benchmarks.{name}", "--bare", "--json", str(path)]
            for option in ("repeats", "peer_repeats", "rows"):
                if (value := getattr(options, option)) is not None:
                    command += [f"--{option.replace('_', '-')}", str(value)]
            codes[name] = subprocess.call(command)
            if path.exists():
                records += json.loads(path.read_text())["benchmarks"]
    if options.json:
        write_json(options.json, {"machine": machine(), "benchmarks": records})
    failed = [name for name, code in codes.items() if code]
    skipped = [record["name"] for record in records if record["skipped"]]
    for outcome, names in (("failed", failed), ("skipped", skipped)):
        if names:
            console.print(f"{outcome}: {', '.join(names)}")
    console.rule("some failed" if failed else "all quality checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
