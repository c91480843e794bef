"""Metadata of the package that is computed when it is built."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ReadmeHook(MetadataHookInterface):
    """README.md, with links and pictures that work outside of the repository."""

    def update(self, metadata):
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = metadata["urls"]["Source"]
        text = re.sub(r"(!\[[^\]]*\]\()(?![a-z]+:|#)", rf"\1{source}/raw/main/", text)
        text = re.sub(r"((?<!!)\[[^\]]*\]\()(?![a-z]+:|#)", rf"\1{source}/blob/main/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
