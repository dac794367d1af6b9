"""The JSON of requests. As with Triton, Content-Type does not matter."""

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from service.domain.translation import MAX_TEXTS
from service.faces.grpc.counts import MAX_DIMENSIONS, MAX_PARAMETERS, MAX_TENSORS
from service.faces.http.bodies import from_json
from service.faces.http.bounded import Anything, AtMost, Name
from service.faces.kserve.plain_data import Parameters

B = TypeVar("B", bound=BaseModel)


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _WithParameters(_Body):
    parameters: Annotated[dict[Name, Anything], AtMost(MAX_PARAMETERS)] | None = None

    @property
    def given(self) -> Parameters:
        return self.parameters or {}


class InputBody(_WithParameters):
    """A tensor: its elements are in `data`, or follow the JSON."""

    name: Name
    datatype: Name
    shape: Annotated[list[Annotated[int, Field(ge=-(2**63), lt=2**63)]], AtMost(MAX_DIMENSIONS)]
    data: Annotated[list[Anything], AtMost(MAX_TEXTS)] | None = None


class OutputBody(_WithParameters):
    """A tensor that the caller wants."""

    name: Name


class InferBody(_WithParameters):
    """A request to infer. The URL names the model; some clients name it here, too."""

    model_name: Name | None = None
    model_version: Name | None = None
    id: Name | None = None
    inputs: Annotated[list[InputBody], AtMost(MAX_TENSORS)]
    outputs: Annotated[list[OutputBody], AtMost(MAX_TENSORS)] | None = None


class IndexBody(_Body):
    """A request for the list of models."""

    ready: bool = False


class ModelBody(_WithParameters):
    """A request to load or unload a model."""


def parsed(document: bytes, kind: type[B]) -> B:
    """Read JSON; nothing at all counts as an empty object.

    Raises:
        InvalidRequest: as for `from_json`.
    """
    return from_json(document or b"{}", kind)
