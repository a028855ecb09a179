"""Exceptions. Their messages are those of the command `foreread`."""


class ForereadError(Exception):
    """An operation failed. Base class of the other exceptions."""


class UsageError(ForereadError, ValueError):
    """An argument is invalid, or a file has no valid content."""


class NotPermittedError(ForereadError, PermissionError):
    """The operating system refused access."""
