"""The file itself: what is inside in words, the model, and a checksum of both.

A zip archive of three members. ``about.json`` tells format, versions, settings, input and target;
``model.skops`` is the model; ``sha256`` is the checksum of the two.
"""

import hashlib
import io
import json
import os
import zipfile
from typing import Any

from lokl.files.errors import ModelFileError

# Rises when a file of this version could not be read by the one before, or the other way round.
FORMAT = 1
_ABOUT, _MODEL, _CHECKSUM = "about.json", "model.skops", "sha256"
# A fixed time, so that the same content gives the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)


def pack(about: dict[str, Any], model: bytes) -> bytes:
    """Return the bytes of a file."""
    told = json.dumps({"format": FORMAT, **about}, indent=1, ensure_ascii=False).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (
            (_ABOUT, told),
            (_MODEL, model),
            (_CHECKSUM, _digest(told, model).encode()),
        ):
            member = zipfile.ZipInfo(name, _TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content)
    return stream.getvalue()


def unpack(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Return what is told about a model, and its bytes; the format and the checksum are right."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sorted(archive.namelist()) != sorted((_ABOUT, _MODEL, _CHECKSUM)):
                raise ModelFileError("it is no file of a lokl model")
            _refuse_more_than_memory(sum(member.file_size for member in archive.infolist()))
            told = archive.read(_ABOUT)
            about = json.loads(told)
            _check_format(about)
            model, checksum = archive.read(_MODEL), archive.read(_CHECKSUM)
    except ModelFileError:
        raise
    except Exception as reason:
        # zipfile and the decompressor fail with many kinds of errors on damaged bytes.
        shown = f" ({reason})" if zipfile.is_zipfile(io.BytesIO(content)) else ""
        raise ModelFileError(f"it is no file of a lokl model, or cut short{shown}") from reason
    if _digest(told, model) != checksum.decode("ascii", "replace"):
        raise ModelFileError("its content was changed after it was saved (the checksum is wrong)")
    return about, model


def _digest(about: bytes, model: bytes) -> str:
    # The length keeps a byte from moving from one part to the other unseen.
    return hashlib.sha256(b"%d\n%b%b" % (len(about), about, model)).hexdigest()


def _check_format(about: Any) -> None:
    found = about.get("format") if isinstance(about, dict) else None
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ModelFileError("it is no file of a lokl model")
    if found == FORMAT:
        return
    writer = f"lokl {about.get('lokl', 'of another version')}"
    age, remedy = (
        ("newer", "install that version or a later one")
        if found > FORMAT
        else ("older", "load it with that version, or fit the model again")
    )
    raise ModelFileError(
        f"its format {found} is {age} than {FORMAT}, the one of this version; it was written by "
        f"{writer}: {remedy}"
    )


def _refuse_more_than_memory(size: int) -> None:
    """Raise where a small file would unpack to more than the machine can hold."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    if size > memory:
        raise ModelFileError(
            f"it would unpack to {size / 2**30:.0f} GB, more than the memory of this machine"
        )
