"""Print the code lines of each package, and of docstrings, so that growth is seen.

A code line is neither blank nor a comment nor part of a docstring.

    python tests/size.py
"""

import ast
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "lokl"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstring_lines(tree):
    """Line numbers of all docstrings of a module."""
    lines = set()
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            lines.update(range(text.lineno, text.end_lineno + 1))
    return lines


def count(path):
    """Number of code lines and of docstring lines of a file."""
    text = path.read_text(encoding="utf-8")
    documentation = docstring_lines(ast.parse(text))
    code = sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in documentation
        for number, line in enumerate(text.splitlines(), 1)
    )
    return code, len(documentation)


def main():
    code, documentation, files = Counter(), Counter(), Counter()
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).parts
        package = parts[0] if len(parts) > 1 else "lokl"
        lines, texts = count(path)
        code[package] += lines
        documentation[package] += texts
        files[package] += 1
    print(f"{'package':12} {'files':>6} {'code':>7} {'docstrings':>11}")
    for package, lines in code.most_common():
        print(f"{package:12} {files[package]:6d} {lines:7,d} {documentation[package]:11,d}")
    total, texts = sum(code.values()), sum(documentation.values())
    print(f"{'total':12} {sum(files.values()):6d} {total:7,d} {texts:11,d}", end="")
    print(f"  ({texts / total:.2f} docstring lines for each code line)")


if __name__ == "__main__":
    main()
