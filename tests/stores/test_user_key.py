"""Key of the user: of the environment, else of a private file, else of this process alone."""

from pathlib import Path

import pytest

from agentv.stores import judge_cache as keys
from agentv.stores.sqlite import SqliteJudgeCache


@pytest.fixture(autouse=True)
def _no_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(keys.KEY_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    keys.key_in.cache_clear()


def test_the_key_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    key = keys.user_key()
    keys.key_in.cache_clear()
    assert keys.user_key() == key
    assert len(key) == keys.KEY_BYTES
    file = tmp_path / "config" / "agentv" / "cache.key"
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (key, 0o600)


def test_the_environment_has_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(keys.KEY_VARIABLE, "mine")
    assert keys.user_key() == b"mine"


def test_without_a_place_for_it_the_key_lasts_as_long_as_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    key = keys.user_key()
    assert keys.user_key() == key
    keys.key_in.cache_clear()
    assert keys.user_key() != key


def test_replies_and_nonces_of_another_user_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = SqliteJudgeCache(tmp_path / "runs.db")
    mine.put("key", b"reply")
    secret = mine.secret
    mine.close()
    monkeypatch.setenv(keys.KEY_VARIABLE, "another user")
    other = SqliteJudgeCache(tmp_path / "runs.db")
    assert other.get("key") is None
    assert other.secret != secret
    other.close()
