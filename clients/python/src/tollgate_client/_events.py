"""The pieces of streams. Which members an event has depends on its type; what vendors add beside them stays readable."""

from __future__ import annotations

from typing import Any

from ._answer import Part
from ._generated import ChatAnswerUsage, ImagesAnswerUsage


class ChatChunkFunction(Part):
    name: str | None = None
    arguments: str | None = None


class ChatChunkToolCall(Part):
    index: int
    id: str | None = None
    type: str | None = None
    function: ChatChunkFunction | None = None


class ChatChunkDelta(Part):
    role: str | None = None
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ChatChunkToolCall] | None = None


class ChatChunkChoice(Part):
    index: int
    delta: ChatChunkDelta
    finish_reason: str | None = None


class ChatChunk(Part):
    """A piece of a streamed chat completion."""

    id: str
    object: str
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: ChatAnswerUsage | None = None


class ResponsesEvent(Part):
    """An event of a streamed response."""

    type: str
    sequence_number: int | None = None
    output_index: int | None = None
    item_id: str | None = None
    #: Of ``response.output_text.delta`` and others that bring a piece.
    delta: str | None = None
    item: dict[str, Any] | None = None
    #: As far as it is there yet.
    response: dict[str, Any] | None = None


class MessagesDelta(Part):
    type: str | None = None
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    stop_reason: str | None = None


class MessagesBlock(Part):
    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None


class MessagesEventUsage(Part):
    input_tokens: int | None = None
    output_tokens: int | None = None


class MessagesEvent(Part):
    """An event of a streamed message."""

    type: str
    index: int | None = None
    #: As far as it is there yet.
    message: dict[str, Any] | None = None
    content_block: MessagesBlock | None = None
    delta: MessagesDelta | None = None
    usage: MessagesEventUsage | None = None


class ImageEventPicture(Part):
    index: int
    url: str


class ImageEvent(Part):
    type: str
    data: list[ImageEventPicture] | None = None
    usage: ImagesAnswerUsage | None = None
