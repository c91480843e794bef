"""Files are written whole or not at all, devices and pipes in place, and folders never created."""

import os
import stat
import subprocess
import sys
import threading

import pytest

from lokl._files import check_writable, is_ordinary, replace_file

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")


def test_a_file_is_replaced_and_nothing_is_left(tmp_path):
    path = tmp_path / "a"
    for content in (b"first", b"second"):
        check_writable(path)
        replace_file(path, content)
        assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["a"]


@posix
def test_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    replace_file(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@posix
@pytest.mark.parametrize("name", ["/dev/null", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_names_of_devices_and_open_files_are_not_ordinary(name, tmp_path):
    if not os.path.exists(name):
        pytest.skip(f"the system has no {name}")
    code = "import sys; from pathlib import Path; from lokl._files import *; p = Path(sys.argv[1]);"
    code += "assert not is_ordinary(p); check_writable(p); replace_file(p, b'content')"
    # A redirection of the shell, to which others write, too.
    out = tmp_path / "out"
    with out.open("wb") as stream:
        stream.write(b"before ")
        stream.flush()
        subprocess.run([sys.executable, "-c", code, name], stdout=stream, check=True)
        stream.seek(0, os.SEEK_END)
        stream.write(b" after")
    assert out.read_bytes() == (b"before  after" if "null" in name else b"before content after")
    assert os.listdir(tmp_path) == ["out"]


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can do it")
def test_root_does_not_replace_a_device(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        device.write_bytes(b"")
    except OSError as reason:
        pytest.skip(f"no device can be made here ({reason})")
    check_writable(device)
    replace_file(device, b"content")
    assert stat.S_ISCHR(device.stat().st_mode)
    assert os.listdir(tmp_path) == ["null"]


@posix
def test_a_pipe_is_written_in_place(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert not is_ordinary(path)
    check_writable(path)
    writer = threading.Thread(target=replace_file, args=(path, b"content"))
    writer.start()
    assert path.read_bytes() == b"content"
    writer.join()
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_ordinary_files_in_folders_of_any_name(tmp_path):
    folder = tmp_path / "fd"
    folder.mkdir()
    path = folder / "1"
    path.write_bytes(b"old")
    assert is_ordinary(path)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"


def test_folders_are_refused_and_not_created(tmp_path):
    with pytest.raises(IsADirectoryError):
        check_writable(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError) as raised:
        check_writable(tmp_path / "file" / "a")
    assert raised.value.filename == str(tmp_path / "file")
    for write in (check_writable, lambda path: replace_file(path, b"content")):
        with pytest.raises(FileNotFoundError):
            write(tmp_path / "new" / "a")
    assert os.listdir(tmp_path) == ["file"]
