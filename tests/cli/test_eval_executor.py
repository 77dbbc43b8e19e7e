"""`agentv eval` with an executor that the project file or an option names."""

import pytest

from tests.support.command import Command

EVAL = {
    "targets": [{"name": "m", "provider": "mock", "reply": "hi"}],
    "cases": [{"id": "a", "input": "q", "evaluators": [{"type": "contains", "value": "hi"}]}],
}


def test_the_project_file_names_an_executor_and_an_option_goes_before_it(run: Command) -> None:
    run.write("agentv.yaml", {"executor": "spark://host:1"})
    run.write("a.eval.yaml", EVAL)
    refused = run("eval", "a.eval.yaml")
    assert refused.code != 0
    assert "there is no executor 'spark://host:1': write local, dask, ray, tls, or an address" in refused.err
    assert run("eval", "a.eval.yaml", "--executor", "local").code == 0


def test_a_project_that_may_run_nothing_chooses_no_executor(run: Command) -> None:
    run.write("agentv.yaml", {"executor": "spark://host:1"})
    run.write("a.eval.yaml", EVAL)
    assert run("eval", "a.eval.yaml", "--no-exec").code == 0


@pytest.mark.parametrize("address", ["dask://127.0.0.1", "ray://head:", "tls://host:port", "dask://:8786"])
def test_an_address_without_a_port_is_a_mistake_of_the_command_line(run: Command, address: str) -> None:
    run.write("a.eval.yaml", EVAL)
    refused = run("eval", "a.eval.yaml", "--executor", address)
    assert refused.code == 2
    assert f"{address!r} names no port: write {address.partition(':')[0]}://HOST:PORT" in refused.err


def test_an_executor_without_a_name_is_an_error_of_the_project_file(run: Command) -> None:
    run.write("agentv.yaml", {"executor": ""})
    run.write("a.eval.yaml", EVAL)
    refused = run("eval", "a.eval.yaml")
    assert refused.code != 0
    assert "executor: expected str of length >= 1" in refused.err
