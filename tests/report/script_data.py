"""Data that the script of a page reads."""

import json
import re

import numpy as np


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))


def unpacked(column):
    """Numbers of a packed column, as the script reads them."""
    width, text = column["width"], column["text"]
    codes = np.array([int(text[k : k + width], 36) for k in range(0, len(text), width)], float)
    codes[codes == 36**width - 1] = np.nan
    return np.asarray(column["from"] + codes / column["per"])
