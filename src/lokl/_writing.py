"""Files that are whole or as they were before."""

from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Write a file under another name, then move it to its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
