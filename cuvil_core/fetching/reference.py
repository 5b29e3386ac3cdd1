"""Names of things in a registry: `HOST/REPOSITORY@sha256:…` or `HOST/REPOSITORY:tag`."""

import os
import re
from dataclasses import dataclass

from cuvil_core.errors import InputError
from cuvil_core.fetching.web import masked

LARGEST_PORT = 65535
INSECURE = "CUVIL_INSECURE_REGISTRIES"
_HOST = r"(?P<host>(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?)"
_REPOSITORY = r"(?P<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
_REFERENCE = re.compile(
    rf"{_HOST}/{_REPOSITORY}(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{{0,127}}))?(?:@(?P<digest>sha256:[0-9a-f]{{64}}))?"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """Where something lies in a registry."""

    host: str
    repository: str
    name: str
    """A tag, or `sha256:…`, which wins when both are given."""

    @property
    def digest(self) -> str | None:
        """The digest when the reference is by digest."""
        return self.name if self.name.startswith("sha256:") else None

    def at(self, name: str) -> "Reference":
        """Give the same repository under another tag or digest."""
        return Reference(self.host, self.repository, name)

    def base(self, insecure: bool) -> str:
        """Give the URL of the repository's part of the distribution API.

        Plain HTTP for registries that are stated to be insecure, by the caller or in CUVIL_INSECURE_REGISTRIES, and
        for this machine, as container tools do.
        """
        stated = [one.strip() for one in os.environ.get(INSECURE, "").split(",")]
        name = self.host.rpartition(":")[0] or self.host
        plain = insecure or self.host in stated or name == "localhost" or name.startswith("127.")
        return f"{'http' if plain else 'https'}://{self.host}/v2/{self.repository}"

    def __str__(self) -> str:
        """Give the reference as it is written."""
        return f"{self.host}/{self.repository}{'@' if self.digest else ':'}{self.name}"


def parse(text: str) -> Reference:
    """Read a reference, with or without `oci://`; raises InputError. Without tag and digest it is `latest`."""
    found = _REFERENCE.fullmatch(text.removeprefix("oci://"))
    if found is None or len(text) > 512:
        cure = "; put credentials into docker's config file" if masked(text) != text else ""
        raise InputError(
            f"{masked(text)!r} is no reference{cure}; write HOST/REPOSITORY@sha256:… or HOST/REPOSITORY:TAG"
        )
    port = found["host"].rpartition("]")[2].partition(":")[2]
    if port and int(port) > LARGEST_PORT:
        raise InputError(f"{text!r} is no reference: its port is beyond {LARGEST_PORT}; correct it")
    return Reference(found["host"], found["repository"], found["digest"] or found["tag"] or "latest")


def parse_repository(text: str) -> Reference:
    """Read what one may push to: `HOST/REPOSITORY[:TAG]`, with or without `oci://`; raises InputError."""
    try:
        where = parse(text)
    except InputError as fault:
        raise InputError(f"{masked(text)!r} is no repository; write HOST/REPOSITORY or HOST/REPOSITORY:TAG") from fault
    if where.digest is not None:
        raise InputError(f"{where} is a digest; push to HOST/REPOSITORY or HOST/REPOSITORY:TAG")
    return where
