"""What can go wrong between a model and its file."""


class ModelFileError(ValueError):
    """A model cannot be stored, or a file holds no model that may be loaded; says why."""
