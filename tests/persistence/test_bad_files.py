"""Files that are damaged, changed, foreign or malicious are refused, and nothing in them runs."""

import builtins
import contextlib
import io
import json
import os
import pickle
import sys
import threading
import zipfile

import numpy as np
import pytest
from file_cases import members, resealed, samples, saved, state_of, with_state, zipped
from hypothesis import given, settings
from hypothesis import strategies as st

import lokl
from lokl.persistence import ModelFileError, info, is_harmless, pack, trusted_beyond_skops, unpack

CASES = int(os.environ.get("LOKL_FUZZ_CASES", "300"))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("models"))


@pytest.fixture
def refused(tmp_path):
    """Whether bytes are refused, with which words."""

    def check(content, told):
        bad = tmp_path / "bad.lokl"
        bad.write_bytes(content)
        with pytest.raises(ModelFileError, match=told) as caught:
            lokl.load(bad)
        assert str(caught.value).startswith(f"{bad} cannot be loaded: ")
        assert "\n" not in str(caught.value)

    return check


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_short(path, refused, share):
    content = path.read_bytes()
    refused(content[: int(share * len(content))], "not a file of a lokl model")


def test_files_of_others(refused, tmp_path):
    refused(b"a,b\n1,2\n", "not a file of a lokl model")
    refused(pickle.dumps({"a": 1}), "not a file of a lokl model")
    refused(zipped({"a.txt": b"hello"}), "not a file of a lokl model")
    np.savez(tmp_path / "arrays.npz", a=np.ones(3))
    refused((tmp_path / "arrays.npz").read_bytes(), "not a file of a lokl model")


def test_no_file_at_all(tmp_path):
    with pytest.raises(FileNotFoundError):
        lokl.load(tmp_path / "nowhere.lokl")


@pytest.mark.parametrize("member", ["about.json", "model.skops", "sha256"])
def test_content_that_was_changed(path, refused, member):
    parts = members(path.read_bytes())
    parts[member] = parts[member].replace(b"C", b"c", 1) + b" "
    refused(zipped(parts), "checksum")


def test_a_member_that_lacks_or_is_there_twice(path, refused):
    parts = members(path.read_bytes())
    refused(zipped({k: v for k, v in parts.items() if k != "sha256"}), "not a file of a lokl")
    about, model = unpack(path.read_bytes())
    stream = io.BytesIO(model)
    with zipfile.ZipFile(stream, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("schema.json", b"{}")
    refused(pack(about, stream.getvalue()), "duplicate member")


def reformatted(content, number):
    about, model = unpack(content)
    return pack({**about, "format": number}, model)


def test_a_newer_format_says_which_version_wrote_it(path, refused):
    told = r"format 2 .* 1, .* lokl "
    refused(reformatted(path.read_bytes(), 2), told)


@pytest.mark.parametrize("number", [0, -1, "1", None, True, 1.0])
def test_a_format_that_never_was(path, refused, number):
    refused(reformatted(path.read_bytes(), number), "not a file of a lokl model")


def test_an_older_format_says_what_to_do(path, refused, monkeypatch):
    content = path.read_bytes()
    monkeypatch.setattr("lokl.persistence.FORMAT", 2)
    refused(content, r"format 1 .* 2, .* lokl ")


def test_a_file_that_unpacks_to_more_than_memory(path, refused, monkeypatch):
    monkeypatch.setattr(os, "sysconf", lambda name: 10)
    refused(path.read_bytes(), "memory")


# What a malicious file may name: its own way to be made, and what it would run.
COMMAND = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
TUPLE = {
    "__class__": "tuple",
    "__module__": "builtins",
    "__loader__": "TupleNode",
    "content": [{**COMMAND, "content": '"touch HARM"'}],
}
EMPTY = {
    "__class__": "dict",
    "__module__": "builtins",
    "__loader__": "DictNode",
    "content": {},
    "key_types": {
        "__class__": "list",
        "__module__": "builtins",
        "__loader__": "ListNode",
        "content": [],
    },
}


def node(module, name, loader, **content):
    return {"__module__": module, "__class__": name, "__loader__": loader, **content}


SYSTEM = node("posix", "system", "FunctionNode")
MALICIOUS = {
    "a constructor": node("posix", "system", "ConstructorFromReduceNode", content=TUPLE),
    "a function": SYSTEM,
    "a type": node("posix", "system", "TypeNode"),
    "os.system": node("os", "system", "ConstructorFromReduceNode", content=TUPLE),
    "eval": node("builtins", "eval", "ConstructorFromReduceNode", content=TUPLE),
    "an operator": node("operator", "methodcaller", "OperatorFuncNode", attrs=TUPLE),
    "a method": node(
        "builtins", "str", "MethodNode", content={"func": "upper", "obj": TUPLE["content"][0]}
    ),
    "a partial": node(
        "functools",
        "partial",
        "PartialNode",
        content={"func": SYSTEM, "args": TUPLE, "kwds": EMPTY, "namespace": EMPTY},
    ),
    "a reduction": node(
        "sklearn.tree._tree", "Tree", "TreeNode", content=EMPTY, __reduce__={"args": TUPLE}
    ),
    "a loss": node("posix", "system", "LossNode", content=EMPTY, __reduce__={"args": TUPLE}),
    "an unknown type": node("harm_to_import", "Harm", "ObjectNode", content=EMPTY),
    "an unknown type of lokl": node("lokl.kernels.dot", "Harm", "ObjectNode", content=EMPTY),
    "an unknown module of lokl": node("lokl.kernels.harm", "Harm", "ObjectNode", content=EMPTY),
    "a class that lokl imports": node("lokl.kernels.dot", "Kernel", "ObjectNode", content=EMPTY),
    "a function of lokl": node("lokl.kernels.dot", "stretched", "FunctionNode"),
    "a call of lokl": node("lokl.kernels.dot", "RBF", "ConstructorFromReduceNode", content=TUPLE),
    "a command of lokl": node("lokl.cli.app", "app", "ObjectNode", content=EMPTY),
    "an unknown way": node("builtins", "dict", "HarmNode", content=EMPTY),
    "an old way": {**node("builtins", "dict", "DictNode", content=EMPTY), "protocol": 0},
}


def planted(state, thing):
    """The state of a model with a thing among its attributes."""
    attributes = state["content"]["content"]
    return {
        **state,
        "content": {
            **state["content"],
            "content": {**attributes, "kernels": thing},
        },
    }


@pytest.fixture
def no_harm(tmp_path, monkeypatch):
    """A folder where harm would show: as a file, or as an import."""
    (tmp_path / "harm_to_import.py").write_text("open('HARM', 'w')\nclass Harm: pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    assert not (tmp_path / "HARM").exists()
    assert "harm_to_import" not in sys.modules


@pytest.mark.parametrize("kind", MALICIOUS)
@pytest.mark.parametrize("place", ["inside", "alone"])
def test_nothing_that_a_file_names_runs(path, refused, no_harm, kind, place):
    content = path.read_bytes()
    state, thing = state_of(content), MALICIOUS[kind]
    protocol = thing.get("protocol", state["protocol"])
    whole = planted(state, thing) if place == "inside" else thing
    refused(with_state(content, {**whole, "protocol": protocol}), r"it holds|damaged")


def test_a_trusted_name_cannot_be_made_in_another_way(path, refused):
    content = path.read_bytes()
    state = state_of(content)
    called = node("lokl.kernels.dot", "Linear", "ConstructorFromReduceNode", content=TUPLE)
    refused(with_state(content, planted(state, called)), r"lokl\.kernels\.dot\.Linear")


def test_an_object_that_is_no_estimator(path, refused):
    content = path.read_bytes()
    state = {**EMPTY, "protocol": state_of(content)["protocol"]}
    refused(with_state(content, state), "dict")


def test_a_state_as_deep_as_a_well(path, refused):
    deep = b'{"content":' * 100_000 + b"{}" + b"}" * 100_000
    content = resealed(path.read_bytes(), lambda parts: {**parts, "schema.json": deep})
    refused(content, "damaged")


def test_lists_of_what_is_trusted():
    assert not any(map(is_harmless, ("MethodNode", "PartialNode", "OperatorFuncNode", "TreeNode")))
    assert trusted_beyond_skops([("lokl.kernels.dot.RBF", "ObjectNode")])
    for name in ("lokl.cli.app.app", "lokl.paper.cells.RecordFile", "os.system", "lokl", ""):
        assert not trusted_beyond_skops([(name, "ObjectNode")])


def load_or_refuse(content, folder):
    """Load bytes; the only error is ours, and nothing is imported that was not there."""
    bad = folder / "fuzzed.lokl"
    bad.write_bytes(content)
    before = set(sys.modules)
    for read in (info, lokl.load):
        with contextlib.suppress(ModelFileError):
            read(bad)
    foreign = {name for name in set(sys.modules) - before if not name.startswith(ALLOWED)}
    assert not foreign, foreign


ALLOWED = ("lokl.", "sklearn.", "numpy.", "scipy.", "skops.", "encodings.")

every_byte = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6
)


def changed(content, changes):
    content = bytearray(content)
    for place, value in changes:
        content[int(place * len(content))] = value
    return bytes(content)


@pytest.mark.slow
@settings(max_examples=CASES)
@given(changes=every_byte, end=st.floats(0.2, 1))
def test_any_bytes_may_be_wrong(path, tmp_path_factory, changes, end):
    content = path.read_bytes()
    content = changed(content[: max(1, int(end * len(content)))], changes)
    load_or_refuse(content, tmp_path_factory.getbasetemp())


@pytest.mark.slow
@settings(max_examples=CASES)
@given(changes=every_byte, which=st.integers(0, 10**6))
def test_any_byte_below_the_checksum_may_be_wrong(path, tmp_path_factory, changes, which):
    def change(parts):
        name = sorted(parts)[which % len(parts)] if which % 2 else "schema.json"
        return {**parts, name: changed(parts[name], changes)}

    load_or_refuse(resealed(path.read_bytes(), change), tmp_path_factory.getbasetemp())


words = st.sampled_from(
    [
        *("builtins", "os", "posix", "operator", "functools", "lokl.kernels.dot", "sklearn.svm"),
        *("system", "eval", "partial", "RBF", "SVC", "dict", "list", "str", "slice"),
        *("harm_to_import", "subprocess", "Popen", "numpy", "dtype", "ndarray"),
        *(k for k in ("ObjectNode", "DictNode", "ListNode", "TypeNode", "FunctionNode")),
        *("CachedNode", "ConstructorFromReduceNode", "NdArrayNode", "DTypeNode", "JsonNode"),
    ]
)
values = words | st.none() | st.integers() | st.just({}) | st.just([]) | st.sampled_from([EMPTY])


def nodes_of(state):
    waiting, found = [state], []
    while waiting:
        own = waiting.pop()
        if isinstance(own, dict):
            found.append(own)
        waiting.extend(
            own.values() if isinstance(own, dict) else own if isinstance(own, list) else ()
        )
    return found


@pytest.mark.slow
@settings(max_examples=CASES)
@given(
    changes=st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), values), min_size=1, max_size=4
    )
)
def test_any_word_of_the_state_may_be_another(path, tmp_path_factory, changes):
    content = path.read_bytes()
    state = state_of(content)
    for which, entry, value in changes:
        found = [own for own in nodes_of(state) if own]
        own = found[which % len(found)]
        own[sorted(own)[entry % len(own)]] = json.loads(json.dumps(value))
    load_or_refuse(with_state(content, state), tmp_path_factory.getbasetemp())


def test_reading_opens_no_other_file(path, monkeypatch):
    model = lokl.load(path)  # all imports are done
    opened, usual, own = [], open, threading.get_ident()

    def watched(*arguments, **settings):
        # Threads of other tests may go on.
        if threading.get_ident() == own:
            opened.append(arguments)
        return usual(*arguments, **settings)

    with monkeypatch.context() as patched:
        patched.setattr(builtins, "open", watched)
        again = lokl.load(path)
    assert not opened
    X, _ = samples()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
