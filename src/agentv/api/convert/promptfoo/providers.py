"""promptfoo's providers as targets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentv.api.convert.base import Ids, UntranslatableError, Watched, missing_target
from agentv.api.convert.files import find_file, is_file, is_reachable, read_structured
from agentv.api.convert.promptfoo.scripts import CHECKS
from agentv.api.convert.templates import has_template
from agentv.redaction import Redactor
from agentv.redaction.credential_patterns import is_credential_field

if TYPE_CHECKING:
    from agentv.api.convert.base import Conversion
    from agentv.api.convert.source import Place

_ENV = re.compile(r"\{\{\s*env(?:\.(\w+)|\[['\"](\w+)['\"]\])\s*\}\}|\$\{(\w+)\}")
_PATH = re.compile(r"^(?:\(?\s*(?:json|response|data)[^)=]*\)?\s*=>\s*)?json((?:\??\.[A-Za-z_]\w*|\??\.?\[\d+\])+);?$")
_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")
_SENT_AS_IS = {
    *("top_p", "presence_penalty", "frequency_penalty", "stop", "response_format", "tool_choice", "reasoning_effort"),
    *("reasoning", "user", "store", "metadata", "verbosity", "parallel_tool_calls", "functions", "function_call"),
    *("service_tier", "logprobs", "top_logprobs", "include", "n", "text", "truncation", "prompt_cache_key"),
    *("top_k", "thinking", "stop_sequences", "output_config", "modalities", "audio"),
}
"""Settings that go into the body of a request under their own names."""
_COMPATIBLE: dict[str, tuple[str, str]] = {
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "deepseek": ("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "xai": ("https://api.x.ai/v1", "XAI_API_KEY"),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "togetherai": ("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "together": ("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "fireworks": ("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "cerebras": ("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "ollama": ("http://localhost:11434/v1", ""),
    "localai": ("http://localhost:8080/v1", ""),
}
"""Vendors whose servers speak OpenAI's Chat Completions: address, and the variable of the key."""
_MODALITIES = ("image", "video", "transcription", "realtime", "embedding", "embeddings", "moderation", "speech")
_NOT_MODELS = ("agents", "codex-sdk", "codex-app-server", "assistant", "chatkit", "completion", "claude-agent-sdk")


JAVASCRIPT = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
"""Suffixes of programs in JavaScript."""


class ProviderTable:
    """Targets for the providers of one configuration, made once each."""

    def __init__(self, conversion: Conversion) -> None:
        self._conversion = conversion
        self._ids = Ids()
        self.targets: list[dict[str, Any]] = []
        self._judges: dict[str, str] = {}
        self._missing: set[str] = set()

    def add(self, entry: Any, place: Place) -> list[tuple[str, Mapping[str, Any]]]:
        """Add the targets of an entry of `providers`; return their names and the settings in the source."""
        if is_file(entry) and entry.lower().endswith((".yaml", ".yml", ".json")):
            try:
                data = read_structured(find_file(entry, place.document.folder))
            except UntranslatableError as error:
                return [(self._leave_out(self._ids.take(entry), entry, str(error), place), {"id": entry})]
            return [each for item in (data if isinstance(data, list) else [data]) for each in self.add(item, place)]
        options = read_options(entry)
        return [(self._add(options, place), options)]

    def judge(self, entry: Any, place: Place) -> str | None:
        """Return the name of the target that judges; `None` for the default judge of the eval."""
        if isinstance(entry, Mapping) and "id" not in entry:
            for key in ("embedding", "classification", "moderation"):
                if entry.get(key):
                    place.leave_out(f"provider.{key}", "no evaluator asks such a model")
            entry = entry.get("text") or entry
        if entry is None or (isinstance(entry, Mapping) and not (entry.get("id") or len(entry) == 1)):
            return None
        options = read_options(entry)
        key = str(sorted(options.items(), key=str))
        if key not in self._judges:
            self._judges[key] = self._add({"label": f"judge {options['id']}", **options}, place)
        return self._judges[key]

    def add_missing(self, name: str, reason: str) -> None:
        """Add a target that has to be defined, once."""
        if name not in self._missing:
            self._missing.add(name)
            self.targets.append(missing_target(self._ids.take(name), reason))

    def _add(self, options: Mapping[str, Any], place: Place) -> str:
        name = self._ids.take(str(options.get("label") or options["id"]).strip() or "target")
        try:
            target = {"name": name, **convert_provider(options, place, self._conversion)}
        except UntranslatableError as error:
            return self._leave_out(name, str(options["id"]), str(error), place)
        self.targets.append(self._conversion.with_comments(place, target))
        return name

    def _leave_out(self, name: str, identifier: str, reason: str, place: Place) -> str:
        """Report that a provider could not be converted, and add a target that has to be defined."""
        place.leave_out(identifier, reason)
        target = missing_target(name, f"{identifier} was not converted ({reason}): define this target")
        self.targets.append(self._conversion.with_comments(place, target))
        return name


def read_options(entry: Any) -> dict[str, Any]:
    """Return a provider in its long form: `id`, `config`, `label`."""
    if isinstance(entry, str):
        return {"id": entry}
    if isinstance(entry, Mapping):
        if isinstance(entry.get("id"), str):
            return dict(entry)
        for key, value in entry.items():
            if isinstance(value, Mapping):  # {"openai:gpt-4": {config: ...}}
                return {"id": key, **value, **({"id": value["id"]} if isinstance(value.get("id"), str) else {})}
        return {**entry, "id": str(next(iter(entry), "provider"))}
    return {"id": "provider"}


def convert_provider(options: Mapping[str, Any], place: Place, conversion: Conversion) -> dict[str, Any]:
    """Return the settings of a target for a provider; raise `UntranslatableError`."""
    for key in options:
        if key not in {"id", "label", "config", "prompts"}:
            reason = {
                "delay": "`requests_per_minute` of a target limits the rate",
                "transform": "the answer is checked as it is: transform it in the target, or in the check",
                "env": "set the variables in the environment, or with `--env-file`",
            }.get(key, "it has no counterpart")
            place.leave_out(f"providers.{key}", reason)
    identifier = str(options["id"])
    config = options.get("config")
    config = config if isinstance(config, Mapping) else {}
    kind, _, rest = identifier.partition(":")
    if identifier in {"http", "https"} or kind in {"http", "https"}:
        return _http(identifier, config, place)
    if identifier == "echo":
        Watched(config).report(place.at("config"), "echo.config")
        return {"provider": "mock"}
    if kind in {"exec", "python"} or is_file(identifier):
        return _program(identifier, config, place, conversion)
    convert: Callable[[str, Mapping[str, Any], Place], dict[str, Any]] | None = None
    if kind == "openai":
        convert = _openai
    elif kind == "anthropic":
        convert = _anthropic
    if convert is not None:
        return convert(rest, config, place)
    if kind in _COMPATIBLE and rest:
        return _compatible(kind, rest, config, place)
    msg = "there is no provider for it: write one with `cli`, `http` or `python`"
    raise UntranslatableError(msg)


def with_env(value: Any) -> Any:
    """Return a setting with `{{ env.NAME }}` written as `${NAME}`; raise `UntranslatableError` for other templates."""
    if isinstance(value, Mapping):
        return {key: with_env(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_env(item) for item in value]
    if not isinstance(value, str):
        return value
    return _ENV.sub(lambda match: f"${{{match[1] or match[2] or match[3]}}}", value)


def _secret(value: Any, variable: str, place: Place, key: str) -> str:
    """Return a secret as the name of a variable: one that is written out does not reach the output."""
    text = with_env(value)
    if isinstance(text, str) and "${" in text:
        return text
    place.note(key, f"a secret belongs into the environment: set {variable}")
    return f"${{{variable}}}"


def _model(model: str, prefix: str) -> str:
    if not model:
        msg = f"{prefix} names no model"
        raise UntranslatableError(msg)
    return model


def _openai(rest: str, config: Mapping[str, Any], place: Place) -> dict[str, Any]:
    api, _, model = rest.partition(":")
    if api in _MODALITIES or api in _NOT_MODELS:
        msg = f"openai:{api} is neither Chat Completions nor Responses"
        raise UntranslatableError(msg)
    if api not in {"chat", "responses"}:
        api, model = "chat", rest
    model = str(config.get("model") or model)
    target: dict[str, Any] = {"provider": "openai", "model": _model(model, "openai")}
    if api == "responses":
        target["api"] = "responses"
    return {**target, **_model_settings(config, place, "OPENAI_API_KEY")}


def _anthropic(rest: str, config: Mapping[str, Any], place: Place) -> dict[str, Any]:
    api, _, model = rest.partition(":")
    if api in _NOT_MODELS or api == "completion":
        msg = f"anthropic:{api} is not the Messages API"
        raise UntranslatableError(msg)
    model = model if api == "messages" else rest
    target = {"provider": "anthropic", "model": _model(model, "anthropic")}
    return {**target, **_model_settings(config, place, "ANTHROPIC_API_KEY")}


def _compatible(kind: str, rest: str, config: Mapping[str, Any], place: Place) -> dict[str, Any]:
    url, variable = _COMPATIBLE[kind]
    model = rest.removeprefix("chat:") if kind in {"ollama", "localai", "together", "togetherai"} else rest
    if model.startswith(tuple(f"{word}:" for word in _MODALITIES)):
        msg = f"{kind}:{model.partition(':')[0]} is not Chat Completions"
        raise UntranslatableError(msg)
    target: dict[str, Any] = {"provider": "openai", "model": _model(model, kind), "base_url": url}
    if variable:
        target["api_key"] = f"${{{variable}}}"
    return {**target, **_model_settings(config, place, variable or "API_KEY")}


_RENAMED = {
    "apiKey": "api_key",
    "apiBaseUrl": "base_url",
    "organization": "organization",
    "temperature": "temperature",
    "max_tokens": "max_tokens",
    "maxTokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "max_completion_tokens": "max_completion_tokens",
    "seed": "seed",
    "instructions": "system",
    "tools": "tools",
    "headers": "headers",
}


def _model_settings(config: Mapping[str, Any], place: Place, variable: str) -> dict[str, Any]:
    """Return the settings of a model: ours by their names, those of the vendor in `extra_body`."""
    settings: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in config.items():
        where = place.at("config", key)
        content = _load_all(value, where)
        if content is None or key == "model":
            continue
        if has_template(with_env(content)):
            where.leave_out(f"config.{key}", "it is a template")
        elif (own := _own_setting(key, content, where, variable)) is not None:
            settings |= own
        elif key == "passthrough" and isinstance(content, Mapping):
            extra |= with_env(content)
        elif key in _SENT_AS_IS:
            extra[key] = with_env(content)
        else:
            where.leave_out(f"config.{key}", "a target here has no such setting")
    if "max_tokens" in settings and "max_completion_tokens" in settings:
        del settings["max_tokens"]
    return {**settings, "extra_body": extra} if extra else settings


def _own_setting(key: str, value: Any, place: Place, variable: str) -> dict[str, Any] | None:
    """Return a setting under our name, if we have it."""
    if key == "apiKey":
        return {"api_key": _secret(value, variable, place, "config.apiKey")}
    if key == "apiKeyEnvar" and isinstance(value, str):
        return {"api_key": f"${{{value}}}"}
    if key == "apiHost" and isinstance(value, str):
        return {"base_url": f"https://{with_env(value)}/v1"}
    if key in _RENAMED:
        return {_RENAMED[key]: _headers(value, place) if key == "headers" else with_env(value)}
    return None


def _load_all(value: Any, place: Place) -> Any:
    """Return a setting with the files that it names read; those that cannot be read are reported."""
    if is_file(value):
        return _load(value, place)
    if not isinstance(value, list):
        return value
    loaded = [_load_all(item, place) for item in value]
    return [item for item in loaded if item is not None]


def _load(value: str, place: Place) -> Any:
    try:
        return read_structured(find_file(value, place.document.folder))
    except UntranslatableError as error:
        place.leave_out("config", str(error))
        return None


def _headers(value: Any, place: Place) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    headers: dict[str, str] = {}
    for name, text in value.items():
        written = str(with_env(str(text)))
        is_secret = is_credential_field(str(name)) or Redactor({}).text(written) != written
        if is_secret and "${" not in written and "{{" not in written:
            variable = re.sub(r"\W+", "_", name).upper()
            written = _secret(None, variable, place.at(name), name)
        headers[str(name)] = written
    return headers


def _http(identifier: str, config: Mapping[str, Any], place: Place) -> dict[str, Any]:
    url = with_env(config.get("url") or (identifier if "://" in identifier else ""))
    if "request" in config:
        msg = "a raw HTTP request has no counterpart: write `url`, `headers` and `body`"
        raise UntranslatableError(msg)
    if not isinstance(url, str) or not url or not (urlsplit(url).netloc or url.startswith("${")):
        msg = "its address is not given"
        raise UntranslatableError(msg)
    target: dict[str, Any] = {"provider": "http", "url": _request_template(url)}
    method = config.get("method")
    if isinstance(method, str) and method.upper() != "POST":
        target["method"] = method.upper()
    headers = _headers(config.get("headers"), place.at("config", "headers"))
    if headers:
        target["headers"] = {name: _request_template(value) for name, value in headers.items()}
    if isinstance(config.get("queryParams"), Mapping):
        target["query"] = _request_template(with_env(config["queryParams"]))
    if config.get("body") is not None:
        target["body"] = _request_template(with_env(config["body"]))
    _add_reply(target, config.get("transformResponse", config.get("responseParser")), place)
    known = {"url", "method", "headers", "queryParams", "body", "transformResponse", "responseParser"}
    for key in config:
        if key not in known:
            place.at("config", key).leave_out(f"config.{key}", "`http` has no such setting")
    return target


def _add_reply(target: dict[str, Any], code: Any, place: Place) -> None:
    pointer = _pointer(code)
    if pointer is not None:
        target["reply"] = {"text": pointer}
    elif code not in {None, "text", "json"}:
        place.at("config", "transformResponse").leave_out(
            "transformResponse", "it is code: name the text of the reply by a JSON pointer, `reply: {text: /answer}`"
        )


def _request_template(value: Any) -> Any:
    """Return a template of a request with our names; raise `UntranslatableError`."""
    if isinstance(value, Mapping):
        return {key: _request_template(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_request_template(item) for item in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    if "{%" in value:
        msg = "the template of its request has tags"
        raise UntranslatableError(msg)

    def rename(match: re.Match[str]) -> str:
        name = match[1].strip().removeprefix("context.vars.").removeprefix("vars.")
        name = re.sub(r"\s*\|\s*(?:dump|safe)\s*$", "", name)
        if not re.fullmatch(r"[A-Za-z_]\w*(?:\.\w+)*", name):
            msg = f"the template of its request has {match[0]!r}"
            raise UntranslatableError(msg)
        return "{{ prompt }}" if name == "prompt" else f"{{{{ vars.{name} }}}}"

    return re.sub(r"\{\{(.*?)\}\}", rename, value)


def _pointer(code: Any) -> str | None:
    """Return the JSON pointer for code that only walks down, such as `json.choices[0].text`."""
    match = _PATH.match(code.strip()) if isinstance(code, str) else None
    if match is None:
        return None
    return "".join(f"/{name or index}" for name, index in _STEP.findall(match[1].replace("?.", ".")))


def _program(identifier: str, config: Mapping[str, Any], place: Place, conversion: Conversion) -> dict[str, Any]:
    if identifier.startswith("exec:"):
        try:
            command = shlex.split(identifier.removeprefix("exec:").strip())
        except ValueError as error:
            msg = f"its command cannot be read: {error}"
            raise UntranslatableError(msg) from error
        if not command or "{{" in identifier:
            msg = "its command holds a template" if command else "it names no program"
            raise UntranslatableError(msg)
        place.note("exec", "the program gets the prompt as its last argument, without promptfoo's options and context")
        copied = [_copied(argument, place, conversion) for argument in command]
        return {"provider": "cli", "command": [*copied, "{prompt}"]}
    name, _, function = identifier.removeprefix("file://").removeprefix("python:").partition(":")
    if not name.endswith(".py"):
        language = "JavaScript" if name.lower().endswith(JAVASCRIPT) else "another language"
        msg = f"it is a program in {language}: serve it over HTTP, or call it with `cli`"
        raise UntranslatableError(msg)
    path = find_file(name, place.document.folder)
    arguments: dict[str, Any] = {"file": conversion.copy(path)}
    if function:
        arguments["function"] = function
    if config:
        arguments["config"] = with_env(config)
    helper = conversion.helper(CHECKS)
    return {"provider": "python", "function": f"{helper}:call_provider", "args": arguments}


def _copied(argument: str, place: Place, conversion: Conversion) -> str:
    path = place.document.folder / argument
    is_own = not argument.startswith("-") and path.is_file() and is_reachable(path, place.document.folder)
    return f"./{conversion.copy(path)}" if is_own else argument
