"""Secret key of the user, by which cached replies of judges are recognised as one's own."""

import os
import sys
from functools import lru_cache
from pathlib import Path

from agentv.files import PRIVATE_MODE

VARIABLE = "AGENTV_CACHE_KEY"
"""Environment variable with the key, for machines on which no file remains, such as those of CI."""
KEY_BYTES = 32


def user_key() -> bytes:
    """Return the key: of the environment, else of a file of the user; else one that lasts as long as the process."""
    value = os.environ.get(VARIABLE)
    return value.encode() if value else key_in(_key_file())


def _key_file() -> Path:
    if sys.platform == "win32":
        folder = os.environ.get("APPDATA") or "~"
    else:
        folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "agentv" / "cache.key"


@lru_cache
def key_in(path: Path) -> bytes:
    """Return the key in this file, which is made if there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE)
        except FileExistsError:
            key = path.read_bytes()
            return key if len(key) >= KEY_BYTES else os.urandom(KEY_BYTES)
        with open(file, "wb") as stream:  # noqa: PTH123 - it is open already
            key = os.urandom(KEY_BYTES)
            stream.write(key)
    except (OSError, RuntimeError):  # no home, or one that cannot be written: nothing is recognised next time
        return os.urandom(KEY_BYTES)
    return key
