"""Conversion of configurations that tests write."""

import json
from pathlib import Path
from typing import Any

from agentv.api.convert import convert_paths, output_files, write_files
from agentv.api.convert.base import Conversion
from agentv.api.convert.writer import plain_data
from agentv.spec.loader import load_evals


def convert_data(data: Any, folder: Path, name: str = "promptfooconfig.json", source: str | None = None) -> Conversion:
    """Write data as JSON, convert it, and check that the output is valid."""
    folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(data), encoding="utf-8")
    return convert_file(folder / name, source)


def convert_text(text: str, folder: Path, name: str = "promptfooconfig.yaml") -> Conversion:
    """Write a YAML file, convert it, and check that the output is valid."""
    (folder / name).write_text(text, encoding="utf-8")
    return convert_file(folder / name)


def convert_file(path: Path, source: str | None = None) -> Conversion:
    """Convert a file, and check that the output is valid."""
    conversion = convert_paths([str(path)], source)[0]
    out = path.parent / "converted"
    write_files(output_files([conversion]), out, force=True)
    if conversion.evals:
        load_evals([str(out / eval_.file) for eval_ in conversion.evals])
    return conversion


def only_case(conversion: Conversion) -> dict[str, Any]:
    """Return the one case of a conversion, without comments."""
    [eval_] = conversion.evals
    data = plain_data(eval_.data)
    [case] = data["cases"]
    return dict(case)


def left_out(conversion: Conversion) -> list[str]:
    """Return the names of what was left out."""
    return [finding.what for finding in conversion.report.findings if finding.kind == "left_out"]
