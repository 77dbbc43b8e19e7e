"""Record the traces in `../traces` anew, with the real libraries: `python tests/data/emit`."""

import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parents[2] / ".venv-samples" / "emit"
ON = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_AND_EVENT"}
EMITTERS: list[tuple[str, list[str], dict[str, str]]] = [
    ("otel", ["pydantic_ai_agents.py"], {}),
    ("otel", ["openai_agents_openinference.py"], {}),
    ("otel", ["langchain_agents.py", "openinference"], {}),
    ("otel", ["langchain_agents.py", "traceloop"], {}),
    ("otel", ["langchain_agents.py", "both"], {}),
    ("otel", ["openai_client.py", "traceloop"], {}),
    ("otel", ["openai_client.py", "openinference"], {}),
    ("openai_v2", ["openai_client.py", "events"], {}),
    ("openai_v2", ["openai_client.py", "events_without_content"], {}),
    ("langfuse", ["langfuse_agents.py"], {}),
    ("logfire", ["logfire_agents.py"], {}),
    ("adk", ["adk_agents.py", "adk_without_content"], {}),
    ("adk", ["adk_agents.py", "adk"], {**ON, "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"}),
]
"""The environment, the script with its arguments, and the variables of each emitter."""


def interpreter(name: str) -> Path:
    """Return the Python of an environment, which is made when its requirements have changed."""
    text = (HERE / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    home = ENVIRONMENTS / name
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    stamp = home / ".stamp"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != text:
        venv.create(home, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "-qq", "--disable-pip-version-check", "install"]
        subprocess.run([*pip, "-r", str(HERE / "requirements" / f"{name}.txt")], check=True)
        stamp.write_text(text, encoding="utf-8")
    return python


def emit(environment: str, script: list[str], variables: dict[str, str], into: Path | None = None) -> str:
    """Run one emitter; return the last line of its errors, empty if there were none."""
    env = {**os.environ, "PYTHONWARNINGS": "ignore", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **variables}
    env |= {"EMIT_INTO": str(into)} if into else {}
    command = [str(interpreter(environment)), script[0], *script[1:]]
    done = subprocess.run(command, cwd=HERE, env=env, check=False, capture_output=True, text=True)
    return (done.stderr.strip().splitlines() or ["it said nothing"])[-1][:300] if done.returncode else ""


def main() -> int:
    """Record all emitters, or those whose script has one of the given names."""
    chosen = sys.argv[1:]
    failed = 0
    for environment, script, variables in EMITTERS:
        if chosen and not any(name in " ".join(script) for name in chosen):
            continue
        problem = emit(environment, script, variables)
        print(f"{' '.join(script)}: {problem or 'recorded'}", flush=True)
        failed += bool(problem)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
