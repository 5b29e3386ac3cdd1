"""Every error that the controller raises inside itself, split by what the caller does.

OperatorError
├── RetryError         look again later: the world was not ready
│   └── FencedError    the Lease is lost: stop writing, end the process
├── GiveUpError        the same turn would fail again until something changes
│   └── SettingsError  the process cannot start with this environment
└── CorruptError       an owned object does not say what the operator wrote; it is made anew
"""


class OperatorError(Exception):
    """One sentence: what, where, how to fix."""


class RetryError(OperatorError):
    """The world was not ready; the same turn may succeed later."""


class FencedError(RetryError):
    """The Lease is lost or its deadline has passed; nothing may be written any more."""


class GiveUpError(OperatorError):
    """The same turn fails again until the spec, the environment or the cluster changes."""


class SettingsError(GiveUpError):
    """An environment variable is missing or cannot be read; the message names it."""


class CorruptError(OperatorError):
    """An owned object holds other content than the operator wrote."""
