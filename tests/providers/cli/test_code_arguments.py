"""Text of a case never becomes code: placeholders in scripts of shells and interpreters are refused."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentv.errors import ProviderError
from agentv.model.request import Scope
from agentv.providers.cli import Cli


def problems(*command: str, **options: Any) -> list[str]:
    return [str(problem) for problem in Cli(command=command, **options).check("targets[0]")]


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "echo {prompt}"],
        ["sh", "-c", "echo '{prompt}'"],
        ["sh", "-c", "agent --case={case_id}"],
        ["/bin/sh", "-c", "echo {prompt}"],
        ["/usr/bin/env", "sh", "-c", "echo {prompt}"],
        ["bash", "-lc", "echo {prompt}"],
        ["bash", "-ec", "echo {prompt}"],
        ["bash", "-c", "-x", "echo {prompt}"],
        ["bash", "-o", "pipefail", "-c", "echo {prompt}"],
        ["bash", "-euo", "pipefail", "-c", "echo {prompt}"],
        ["bash", "--norc", "-c", "echo {prompt}"],
        ["bash", "-c", "--", "echo {prompt}"],
        ["zsh", "-ic", "echo {prompt}"],
        ["dash", "-c", "{prompt}"],
        ["ksh", "-c", "echo {prompt}"],
        ["fish", "-c", "echo {prompt}"],
        ["fish", "--command", "echo {prompt}"],
        ["fish", "--command=echo {prompt}"],
        ["busybox", "sh", "-c", "echo {prompt}"],
        ["env", "A=1", "-i", "bash", "-c", "echo {prompt}"],
        ["env", "-S", "agent {prompt}"],
        ["env", "-Sagent {prompt}"],
        ["timeout", "5", "bash", "-c", "echo {prompt}"],
        ["nice", "-n", "5", "sh", "-c", "echo {prompt}"],
        ["sudo", "-u", "nobody", "sh", "-c", "echo {prompt}"],
        ["docker", "run", "--rm", "-e", "python", "image", "sh", "-c", "echo {prompt}"],
        ["kubectl", "exec", "pod", "--", "bash", "-c", "echo {prompt}"],
        ["uv", "run", "python", "-c", "print('{prompt}')"],
        ["some-wrapper", "bash", "-c", "echo {prompt}"],
        ["xargs", "-0", "sh", "-c", "echo {prompt}"],
        ["find", ".", "-exec", "sh", "-c", "echo {prompt}", ";"],
        ["sh", "-c", 'eval "$1"', "sh", "{prompt}"],
        ["sh", "-c", 'sh -c "$1"', "sh", "{prompt}"],
        ["eval", "echo {prompt}"],
        ["python3", "-c", "print('{prompt}')"],
        ["python3", "-Ic", "print('{prompt}')"],
        ["python3", "-cprint('{prompt}')"],
        ["python3.12", "-W", "ignore", "-X", "dev", "-c", "print('{prompt}')"],
        ["C:\\Python312\\python.exe", "-c", "print('{prompt}')"],
        ["py", "-3", "-c", "print('{prompt}')"],
        ["pypy3", "-c", "print('{prompt}')"],
        ["python3", "-c", "import sys; exec(sys.argv[1])", "{prompt}"],
        ["node", "-e", "console.log('{prompt}')"],
        ["node", "--eval", "console.log('{prompt}')"],
        ["node", "--eval=console.log('{prompt}')"],
        ["node", "-pe", "'{prompt}'"],
        ["node", "-r", "x", "-p", "'{prompt}'"],
        ["bun", "-e", "'{prompt}'"],
        ["deno", "eval", "console.log('{prompt}')"],
        ["ruby", "-e", "puts '{prompt}'"],
        ["ruby", "-W0", "-ne", "puts '{prompt}'"],
        ["perl", "-e", "print '{prompt}'"],
        ["perl", "-Mstrict", "-lane", "print '{prompt}'"],
        ["perl", "-E", "say '{prompt}'"],
        ["php", "-r", "echo '{prompt}';"],
        ["php", "--run", "echo '{prompt}';"],
        ["lua5.4", "-e", "print('{prompt}')"],
        ["Rscript", "-e", "print('{prompt}')"],
        ["julia", "--eval", "print('{prompt}')"],
        ["awk", 'BEGIN { print "{prompt}" }'],
        ["sed", "s/x/{prompt}/", "file"],
        ["sed", "-e", "s/x/{prompt}/", "file"],
        ["jq", "-n", '"{prompt}"'],
        ["osascript", "-e", 'say "{prompt}"'],
        ["pwsh", "-c", "Write-Host {prompt}"],
        ["pwsh", "-NoProfile", "-Command", "Write-Host", "{prompt}"],
        ["powershell.exe", "Write-Host", "{prompt}"],
        ["powershell", "-EncodedCommand", "{prompt}"],
        ["cmd", "/c", "echo {prompt}"],
        ["cmd.exe", "/s", "/c", "echo", "{prompt}"],
        ["ssh", "-p", "22", "host", "agent", "{prompt}"],
        ["timeout", "9", "ssh", "host", "agent {prompt}"],
        ["su", "nobody", "-c", "agent {prompt}"],
        ["script", "-qc", "agent {prompt}", "/dev/null"],
        ["flock", "lock", "-c", "agent {prompt}"],
        ["make", "run", "PROMPT={prompt}"],
        ["psql", "-d", "db", "-qAtc", "select '{prompt}'"],
        ["mysql", "-u", "me", "db", "-e", "select '{prompt}'"],
        ["sqlite3", "file.db", "select '{prompt}'"],
        ["${SHELL}", "-c", "echo {prompt}"],
        ["${PYTHON:-python3}", "-c", "print('{prompt}')"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_text_of_a_case_in_code_is_refused(command: list[str]) -> None:
    found = problems(*command)
    assert len(found) == 1, found
    assert "run as code" in found[0]
    assert "`{input_file}`" in found[0]
    assert "`allow_code_placeholders: true`" in found[0]
    assert problems(*command, allow_code_placeholders=True) == []


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "agent.sh", "{prompt}"],
        ["sh", "-e", "agent.sh", "{prompt}"],
        ["bash", "-x", "agent.sh", "-c", "{prompt}"],
        ["sh", "-c", 'agent "$1"', "sh", "{prompt}"],
        ["sh", "-c", 'exec agent "$@"', "sh", "--prompt", "{prompt}"],
        ["bash", "-lc", 'agent "$0"', "{prompt}"],
        ["sh", "-c", "agent < {input_file} > {output_file}"],
        ["sh", "-c", "cd {workspace} && agent --attempt {attempt}"],
        ["bash", "-s", "--", "{prompt}"],
        ["env", "PROMPT={prompt}", "sh", "-c", 'agent "$PROMPT"'],
        ["env", "A=1", "agent", "{prompt}"],
        ["python3", "agent.py", "-c", "{prompt}"],
        ["python3", "-m", "agent", "-c", "{prompt}"],
        ["python3", "-Im", "agent", "-e", "{prompt}"],
        ["python3", "-c", "import sys; print(sys.argv[1])", "{prompt}"],
        ["node", "agent.js", "-e", "{prompt}"],
        ["node", "-e", "/a/.exec(process.argv[1])", "{prompt}"],
        ["deno", "run", "agent.ts", "{prompt}"],
        ["ruby", "agent.rb", "-e", "{prompt}"],
        ["perl", "-Ilib", "agent.pl", "{prompt}"],
        ["php", "-f", "agent.php", "{prompt}"],
        ["awk", "-v", "p={prompt}", "BEGIN { print p }"],
        ["jq", "-n", "--arg", "p", "{prompt}", "$p"],
        ["pwsh", "-File", "agent.ps1", "{prompt}"],
        ["pwsh", "agent.ps1", "-c", "1"],
        ["uv", "run", "agent.py", "--prompt", "{prompt}"],
        ["npx", "my-agent", "eval", "{prompt}"],
        ["docker", "run", "image", "agent", "{prompt}"],
        ["claude", "-p", "{prompt}", "--output-format", "stream-json"],
        ["codex", "exec", "{prompt}"],
        ["agent", "-c", "{prompt}"],
        ["agent", "-e", "{prompt}"],
        ["agent", "--lang", "python", "-c", "{prompt}"],
        ["agent", "watch", "{prompt}"],
        ["echo", "You said {prompt}"],
        ["${AGENT}", "--prompt", "{prompt}"],
    ],
    ids=" ".join,
)
def test_text_of_a_case_as_an_argument_is_fine(command: list[str]) -> None:
    assert problems(*command) == []


def test_the_message_says_what_to_write() -> None:
    (found,) = problems("sh", "-c", "agent {case_id} {prompt} {prompt}")
    assert found == (
        "targets[0].command[2]: `{case_id}` and `{prompt}` would be run as code by `sh -c`, whatever the case contains"
        """: pass it as an argument of its own, as in [sh, -c, 'agent "$1"', sh, "{prompt}"], or use `{input_file}`; """
        "`allow_code_placeholders: true` if it is meant"
    )
    assert "sys.argv[1]" in problems("python3", "-c", "{prompt}")[0]


def test_other_modes_refuse_the_placeholder_once() -> None:
    (found,) = problems("sh", "-c", "agent {prompt}", mode="batch")
    assert "`{prompt}` is for `mode: single`" in found


def test_a_target_that_was_made_in_python_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    scope = Scope(root=str(tmp_path), folder=str(tmp_path))
    with pytest.raises(ProviderError, match="run as code by `sh -c`"):
        asyncio.run(Cli(command=("sh", "-c", "echo {prompt}")).open(scope))
    asyncio.run(Cli(command=("sh", "-c", "echo {prompt}"), allow_code_placeholders=True).open(scope))
