"""Description of the JSON API as OpenAPI 3.1, made of the table of endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv import __version__
from agentv.web.endpoints import API, ENDPOINTS, LABEL_PATH, RUN, is_required
from agentv.web.schemas import SCHEMAS

if TYPE_CHECKING:
    from agentv.web.endpoints import Endpoint, Parameter

DESCRIPTION_PATH = f"{API}/openapi.json"
_ERRORS = {
    "400": "A parameter is wrong.",
    "403": "The request comes from another site or host, or lacks a token.",
    "404": "There is no such execution or run.",
    "409": "The run is damaged.",
    "422": "There is no answer, such as a comparison of executions without common cases.",
    "503": "The store is locked, gone or unreadable.",
}


def describe_api() -> dict[str, Any]:
    """Return the description of all endpoints."""
    paths: dict[str, Any] = {endpoint.path: {"get": _operation(endpoint)} for endpoint in ENDPOINTS}
    paths[LABEL_PATH] = {"put": _label_operation()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "agentv", "version": __version__, "description": "Stored executions and runs, for reading."},
        "paths": paths,
        "components": {"schemas": SCHEMAS},
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    content = {"application/json": {"schema": _reference(endpoint.schema)}}
    if endpoint.file:
        content = {endpoint.file: {"schema": {"type": "string", "contentEncoding": "binary"}}}
    return {
        "summary": endpoint.doc,
        "operationId": endpoint.answer.__name__.strip("_"),
        "parameters": [_parameter(parameter) for parameter in endpoint.parameters],
        "responses": {"200": {"description": "The answer.", "content": content}, **_error_responses()},
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    described = {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.place == "path" or is_required(parameter),
        "description": parameter.doc,
        "schema": parameter.schema,
    }
    return {**described, "style": "form", "explode": False} if parameter.schema["type"] == "array" else described


def _label_operation() -> dict[str, Any]:
    body = {
        "type": "object",
        "required": ["label"],
        "additionalProperties": False,
        "properties": {"label": {"enum": ["pass", "fail", None]}, "note": {"type": "string"}},
    }
    answer = {"type": "object", "required": ["label"], "properties": {"label": SCHEMAS["Label"]}}
    return {
        "summary": "Set or remove the label of a run; needs the token of the page in `X-Agentv-Token`.",
        "operationId": "set_label",
        "parameters": [_parameter(RUN)],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": {"description": "The label.", "content": {"application/json": {"schema": answer}}},
            "415": {"description": "The body is not JSON.", "content": _error_content()},
            **_error_responses(),
        },
    }


def _error_responses() -> dict[str, Any]:
    return {status: {"description": text, "content": _error_content()} for status, text in _ERRORS.items()}


def _error_content() -> dict[str, Any]:
    return {"application/json": {"schema": _reference("Error")}}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
