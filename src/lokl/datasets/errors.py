"""What can go wrong between a name and its data."""


class DatasetError(OSError):
    """A data set cannot be read, downloaded or stored; the message says what would help."""


class MissingDatasetError(DatasetError):
    """A data set is not on this machine and was not, or could not be, downloaded."""
