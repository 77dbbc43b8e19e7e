"""Build hook: the addresses of the project's pages, below the address of the repository that releases it."""

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ProjectUrls(MetadataHookInterface):
    """`urls` of the package: the paths in pyproject.toml, below `AGENTV_REPOSITORY_URL`; none where that is not set.

    `AGENTV_DOCUMENTATION_URL` is the address of the documentation site, which `agentv docs` prints.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the addresses to the package's metadata."""
        repository = os.environ.get("AGENTV_REPOSITORY_URL", "").rstrip("/")
        urls = {name: repository + path for name, path in self.config["urls"].items()} if repository else {}
        if site := os.environ.get("AGENTV_DOCUMENTATION_URL"):
            urls["Documentation"] = site
        metadata["urls"] = urls
