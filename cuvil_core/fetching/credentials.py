"""Credentials, from files of mounted Secrets only: never from the command line, never in a URI."""

import base64
import binascii
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from cuvil_core.errors import InputError

SOURCE_FOLDER = "CUVIL_CREDENTIALS_DIR"
REGISTRY_FOLDER = "CUVIL_REGISTRY_CREDENTIALS_DIR"
LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user's name and password, or a token. Its text shows neither."""

    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    @property
    def header(self) -> str | None:
        """The value of an Authorization header, None without credentials."""
        if self.token:
            return f"Bearer {self.token}"
        return self.basic

    @property
    def basic(self) -> str | None:
        """The value for a server or token service that takes a name and a password."""
        if not self.username:
            return None
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


NONE = Credentials()


def for_source() -> Credentials:
    """Read `username`, `password`, `token` under CUVIL_CREDENTIALS_DIR; absent files are empty."""
    folder = os.environ.get(SOURCE_FOLDER)
    if not folder:
        return NONE
    return Credentials(*(_read(Path(folder) / name) for name in ("username", "password", "token")))


def for_registry(host: str) -> Credentials:
    """Give the registry's entry of the docker config file, else the source's credentials.

    The file is `.dockerconfigjson` under CUVIL_REGISTRY_CREDENTIALS_DIR, else `config.json` under DOCKER_CONFIG or
    `~/.docker`. Raises InputError for a file that cannot be understood.
    """
    for path in _docker_files():
        if text := _read(path):
            found = _entry(text, host, path)
            if found is not None:
                return found
    return for_source()


def _docker_files() -> tuple[Path, ...]:
    if folder := os.environ.get(REGISTRY_FOLDER):
        return (Path(folder) / ".dockerconfigjson", Path(folder) / "config.json")
    if folder := os.environ.get("DOCKER_CONFIG"):
        return (Path(folder) / "config.json",)
    return (Path(os.path.expanduser("~")) / ".docker" / "config.json",)


def _entry(text: str, host: str, path: Path) -> Credentials | None:
    try:
        auths = json.loads(text).get("auths") or {}
        for key in (host, f"https://{host}", f"http://{host}", f"https://{host}/v1/", f"https://{host}/v2/"):
            if key in auths:
                return _decode(auths[key])
    except (ValueError, AttributeError, TypeError, RecursionError, binascii.Error) as fault:
        raise InputError(f"{path} is no docker config file ({type(fault).__name__}); mend the Secret") from fault
    return None


def _decode(entry: dict[str, str]) -> Credentials:
    if entry.get("registrytoken"):
        return Credentials(token=entry["registrytoken"])
    if entry.get("auth"):
        username, _, password = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
        return Credentials(username, password)
    return Credentials(entry.get("username", ""), entry.get("password", ""))


def _read(path: Path) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(LIMIT).strip()
    except (OSError, UnicodeDecodeError):
        return ""
