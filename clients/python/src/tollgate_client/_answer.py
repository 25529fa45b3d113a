"""What every answer has in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Mapping, TypeVar, cast

from pydantic import BaseModel, ConfigDict, PrivateAttr, TypeAdapter, ValidationError


@dataclass(frozen=True)
class Cost:
    """What a call cost, as a decimal of credits. What is left, `account()` says."""

    charge: str


class Part(BaseModel):
    """A part of an answer. Vendors add members over time: they are kept, under the names that they came by."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)


class Answer(Part):
    """A whole answer, and beside its members what was said of the call."""

    _cost: Cost | None = PrivateAttr(default=None)
    _request_id: str = PrivateAttr(default="")

    @property
    def cost(self) -> Cost | None:
        """None where nothing was charged by this answer, as of a repetition."""
        return self._cost

    @property
    def request_id(self) -> str:
        return self._request_id


T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Answers(list[T], Generic[T]):
    """An answer that is a list."""

    cost: Cost | None = None
    request_id: str = ""


def cost_of(headers: Mapping[str, str]) -> Cost | None:
    charge = headers.get("x-tollgate-charge")
    return None if charge is None else Cost(charge)


def read_model(model: type[M], value: Any, headers: Mapping[str, str]) -> M:
    """The answer as its model; as it came where it is another thing, because it has been paid for."""
    try:
        read = model.model_validate(value)
    except ValidationError:
        read = model.model_construct(**value) if isinstance(value, dict) else model.model_construct()
    if isinstance(read, Answer):
        read._cost = cost_of(headers)
        read._request_id = headers.get("x-request-id", "")
    return read


def read_list(item: type[T], value: Any, headers: Mapping[str, str]) -> Answers[T]:
    try:
        read = Answers[T](TypeAdapter(list[item]).validate_python(value))  # type: ignore[valid-type]
    except ValidationError:
        read = Answers[T](cast("list[T]", value))
    read.cost = cost_of(headers)
    read.request_id = headers.get("x-request-id", "")
    return read
