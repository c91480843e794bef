"""What can be wrong with tables that people bring."""


class TableError(ValueError):
    """A table cannot be used: one line that names file, row and column, and says what would help.

    Rows count as in a spreadsheet: the header of a text file is row 1.
    """
