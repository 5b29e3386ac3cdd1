"""The `cuvil` command.

Holds: the command line, one file a command, the console, the way from errors to exit codes. Takes arguments → calls the
rooms → gives text or JSON, an exit code of the contract and, in a Job, a termination message. Must not decide anything
that a library caller could not have decided.
"""
