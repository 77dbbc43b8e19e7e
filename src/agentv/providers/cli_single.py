"""`mode: single`: one process for each attempt."""

from contextlib import nullcontext

from agentv.errors import FormatError
from agentv.jsonio import replace_surrogates
from agentv.model.request import Request
from agentv.model.response import ProviderResponse
from agentv.process import Finished, run
from agentv.providers.base import failure
from agentv.providers.cli_command import IN_WORKSPACE, Launch, request_json
from agentv.providers.cli_reply import Printed, read_end
from agentv.providers.cli_start import not_started
from agentv.providers.workspace import Workspace, workspace


async def invoke_single(launch: Launch, request: Request) -> ProviderResponse:
    """Run the program once; when this is cancelled, the program and all it started are dead before it returns."""
    used = launch.used
    try:
        with workspace() if used & IN_WORKSPACE else nullcontext() as private:
            return await _invoke(launch, request, used, private)
    except FormatError as error:
        return failure("transport", str(error))
    except OSError as error:
        return failure("transport", f"the workspace cannot be used: {error}")


async def _invoke(
    launch: Launch, request: Request, used: frozenset[str], private: Workspace | None
) -> ProviderResponse:
    values = {"prompt": request.prompt, "case_id": request.id, "attempt": str(request.attempt)}
    values = {name: replace_surrogates(value) for name, value in values.items()}
    if private is not None:
        values |= {name: getattr(private, name) for name in IN_WORKSPACE}
    if private is not None and "input_file" in used:
        private.write_input(request_json(request))
    command = launch.make(values, b"" if used & {"prompt", "input_file"} else request_json(request))
    try:
        done = await run(command)
    except OSError as error:
        return not_started(error, command)
    printed = _printed(done, private if "output_file" in used else None, launch.max_output_bytes)
    response = read_end(done, printed, launch.max_output_bytes, request.input_messages)
    return response if private is None else private.fetch_trace(response)


def _printed(done: Finished, private: Workspace | None, limit: int) -> Printed | FormatError:
    try:
        data, truncated = private.read_output(limit) if private else (b"", False)
    except FormatError as error:
        return error
    if data:
        return Printed(data, truncated, "the file at {output_file}")
    return Printed(done.stdout, done.stdout_truncated)
