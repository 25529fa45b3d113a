"""Server-sent events, from text that may be cut anywhere."""

from __future__ import annotations

import re
from typing import Iterator, NamedTuple

_EVENT_CHARS_MAX = 32_000_000
_BREAK = re.compile(r"\r?\n\r?\n")


class ServerEvent(NamedTuple):
    event: str
    data: str


class EventReader:
    """Fed with pieces of text, it gives the events that are whole."""

    def __init__(self) -> None:
        self._pending = ""

    def feed(self, text: str) -> Iterator[ServerEvent]:
        *blocks, self._pending = _BREAK.split(self._pending + text)
        if len(self._pending) > _EVENT_CHARS_MAX:
            raise ValueError("An event is too long.")
        for block in blocks:
            event = _parse(block)
            if event:
                yield event

    def end(self) -> Iterator[ServerEvent]:
        event = _parse(self._pending)
        if event:
            yield event


def _parse(block: str) -> ServerEvent | None:
    name, data = "message", []
    for line in block.splitlines():
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
    return ServerEvent(name, "\n".join(data)) if data else None
