"""What an exception means for the run in which it came up."""

from agentv.errors import AgentVError, ProviderError
from agentv.model.response import ErrorKind, ProviderResponse, ResponseError


def failure_of(error: Exception) -> ProviderResponse:
    """The reply of a target that threw this instead of giving one."""
    if isinstance(error, ProviderError):
        return _failed("transport", str(error), retryable=error.transient)
    if isinstance(error, ConnectionError):
        return _failed("transport", f"{type(error).__name__}: {error}", retryable=True)
    if isinstance(error, TimeoutError):
        return _failed("timeout", str(error) or "the agent ran out of time by its own clock")
    if isinstance(error, AgentVError):
        return _failed("protocol", str(error))
    return _failed("agent", f"{type(error).__name__}: {error}")


def _failed(kind: ErrorKind, message: str, *, retryable: bool = False) -> ProviderResponse:
    return ProviderResponse(success=False, error=ResponseError(kind=kind, message=message, retryable=retryable))
