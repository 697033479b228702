"""The product that the pages belong to: `noroshi serve --dev`, and what it prints."""

import re

from tests.browser.scene import Scene, until
from tests.faults.machinery.processes import ServedNoroshi

_PRINTED_AT_LAST = "dead-lettered"


class Product(ServedNoroshi):
    @property
    def key(self) -> str:
        return self._printed(r"Bearer (nrs_\w{36})")

    @property
    def link(self) -> str:
        return self._printed(r"(http://\S+/console/enter\?ticket=nrs_\w{36})")

    @property
    def scene(self) -> Scene:
        return Scene(self.port, self.key)

    def start(self, **environment: str) -> float:
        """Also waits for the demonstration: the server listens before that is over."""
        seconds = super().start(**environment)
        until(lambda: _PRINTED_AT_LAST in self.log())
        return seconds

    def _printed(self, pattern: str) -> str:
        until(lambda: re.search(pattern, self.log()) is not None)
        found: str = re.findall(pattern, self.log())[-1]
        return found
