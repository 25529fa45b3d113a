"""Local files in and out."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Union

from ._errors import TollgateError

#: An address, a data URI, the path of a local file, or the bytes themselves.
Reference = Union[str, "os.PathLike[str]", bytes]


def as_address(reference: Reference) -> str:
    """As the gateway takes it: an address or a data URI."""
    if isinstance(reference, bytes):
        return _data_uri(reference)
    if isinstance(reference, str) and re.match(r"(?:https?|asset)://|data:", reference, re.IGNORECASE):
        return reference
    return _data_uri(Path(reference).read_bytes())


def _data_uri(data: bytes) -> str:
    """By its first bytes; the name of a file may lie."""
    if data.startswith(b"\x89PNG"):
        kind = "png"
    elif data.startswith(b"\xff\xd8\xff"):
        kind = "jpeg"
    elif data.startswith(b"GIF8"):
        kind = "gif"
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "webp"
    else:
        raise TollgateError("A reference must be a PNG, JPEG, GIF or WebP image.")
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
