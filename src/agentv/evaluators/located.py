"""Where a function of the user's lives, for a check: what cannot be found is that check's error."""

from pathlib import Path
from typing import Any

from agentv.errors import EvaluationError, FormatError
from agentv.files import code
from agentv.model.request import Scope


def find_file(name: str, scope: Scope | None) -> Path:
    """The file of this name in the eval's folder, else in the project's; `EvaluationError` when there is none."""
    try:
        return code.find_file(name, scope)
    except FormatError as error:
        raise EvaluationError(str(error)) from None


def load_function(place: str, scope: Scope | None) -> Any:
    """Import what is named; `EvaluationError` when it is not there, and whatever its own code throws."""
    try:
        return code.load_place(place, scope)
    except FormatError as error:
        raise EvaluationError(str(error)) from None
