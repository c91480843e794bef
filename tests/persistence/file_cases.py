"""Files that the tests of models on disk share: good ones, and ways to spoil them."""

import io
import json
import zipfile

import numpy as np

import lokl
from lokl.kernels import RBF, Linear
from lokl.persistence import pack, unpack


def samples(n=60, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 4))
    return X, np.array(["no", "yes"])[(X[:, 0] + X[:, 2] > 0).astype(int)]


def saved(folder, model=None):
    """The path of a small model's file."""
    if model is None:
        model = lokl.UniformMKLClassifier([Linear(), RBF(0.5)]).fit(*samples(20))
    path = folder / "model.lokl"
    lokl.save(model, path)
    return path


def members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


def resealed(content, change):
    """The file with parts of its model changed, and a checksum that fits them.

    `change` takes and returns a mapping of names to bytes, ``schema.json`` among them.
    """
    about, model = unpack(content)
    return pack(about, zipped(change(members(model))))


def with_state(content, state):
    """The file with another description of the objects in it."""
    return resealed(content, lambda parts: {**parts, "schema.json": json.dumps(state).encode()})


def state_of(content):
    return json.loads(members(unpack(content)[1])["schema.json"])
