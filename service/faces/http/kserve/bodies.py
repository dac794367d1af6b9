"""The JSON of requests. As with Triton, Content-Type does not matter."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.faces.grpc.kserve.plain_data import Parameters
from service.faces.http.bodies import adapter, invalid

B = TypeVar("B", bound=BaseModel)


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _WithParameters(_Body):
    parameters: dict[str, Any] | None = None

    @property
    def given(self) -> Parameters:
        """Return the parameters."""
        return self.parameters or {}


class InputBody(_WithParameters):
    """A tensor: its elements are in `data`, or follow the JSON."""

    name: str
    datatype: str
    shape: list[Annotated[int, Field(ge=-(2**63), lt=2**63)]]
    data: list[Any] | None = None


class OutputBody(_WithParameters):
    """A tensor that the caller wants."""

    name: str


class InferBody(_WithParameters):
    """A request to infer. The URL names the model; some clients name it here, too."""

    model_name: str | None = None
    model_version: str | None = None
    id: str | None = None
    inputs: list[InputBody]
    outputs: list[OutputBody] | None = None


class IndexBody(_Body):
    """A request for the list of models."""

    ready: bool = False


class ModelBody(_WithParameters):
    """A request to load or unload a model."""


def parsed(document: bytes, kind: type[B]) -> B:
    """Read JSON; nothing at all counts as an empty object.

    Raises:
        InvalidRequest: it is not JSON, or not of this type.
    """
    try:
        body: B = adapter(kind).validate_json(document or b"{}")
    except ValidationError as error:
        raise invalid(error) from None
    return body
