"""Is your agent doing the right things? Scores its messages and tool calls, offline and without a model."""

__version__ = "0.2.0"

_STUB = __file__.rpartition(".")[0] + ".pyi"
_IMPORTS = [line.split() for line in __loader__.get_data(_STUB).decode().splitlines() if line.startswith("from ")]
_PLACES = {name: module for _, module, _, name, *_ in _IMPORTS}
"""The module of each public name, from the stub: the names are listed there and nowhere else."""
__all__ = sorted(_PLACES)  # noqa: PLE0605 - one list for both


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: `import agentv` alone costs next to nothing."""
    if name not in _PLACES:
        msg = f"module 'agentv' has no attribute {name!r}"
        raise AttributeError(msg)
    value: object = getattr(__import__(_PLACES[name], fromlist=(name,)), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
