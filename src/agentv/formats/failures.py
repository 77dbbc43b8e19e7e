"""What an exception means for the run in which it came up."""

from agentv.errors import AgentVError, ProviderError
from agentv.model.response import ErrorKind, ProviderResponse, ResponseError


def failure_of(error: BaseException) -> ProviderResponse:
    """The reply of a target that threw this instead of giving one."""
    if isinstance(error, ProviderError):
        return _failed("transport", str(error), retryable=error.transient)
    if isinstance(error, ConnectionError):
        return _failed("transport", words_of(error), retryable=True)
    if isinstance(error, TimeoutError):
        return _failed("timeout", str(error) or "the agent ran out of time by its own clock")
    if isinstance(error, AgentVError):
        return _failed("protocol", str(error))
    return _failed("agent", words_of(error))


def words_of(error: BaseException) -> str:
    """What an exception is and says; one may say nothing, or fail even at that."""
    name = type(error).__name__
    try:
        said = str(error)
    except Exception as wrong:  # noqa: BLE001 - code of somebody's, as all that is thrown here
        return f"{name}, whose text is itself an error ({type(wrong).__name__})"
    return f"{name}: {said}" if said else name


def _failed(kind: ErrorKind, message: str, *, retryable: bool = False) -> ProviderResponse:
    return ProviderResponse(success=False, error=ResponseError(kind=kind, message=message, retryable=retryable))
