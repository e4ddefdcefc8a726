"""Outputs are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastrbhc._files as files
from fastrbhc import cli
from fastrbhc._files import replacing

TABLE = "name,x,y\na,0,0\nb,1,0\nc,9,9\nd,9,8\n"
posix = pytest.mark.skipif(os.name != "posix", reason="permissions, links and pipes of Unix")
as_root = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of its own, with a table; what is in it besides is seen by the tests."""
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text(TABLE)
    return tmp_path


def others(folder):
    return sorted(set(os.listdir(folder)) - {"table.csv"})


class Failing:
    """A file whose third write fails."""

    def __init__(self, file, error):
        self.file, self.error, self.left = file, error, 2

    def write(self, data):
        if self.left == 0:
            raise self.error
        self.left -= 1
        return self.file.write(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def __getattr__(self, name):
        return getattr(self.file, name)


FULL = OSError(errno.ENOSPC, "No space left on device")
failures = pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()], ids=["full", "interrupt"])


def write_and_fail(name, mode, error):
    with replacing(name, mode) as file:
        file.write("new" if mode == "w" else b"new")
        raise error


@failures
def test_a_failure_leaves_the_old_file(folder, error):
    Path("out").write_text("old")
    with pytest.raises((OSError, KeyboardInterrupt)):
        write_and_fail("out", "w", error)
    assert others(folder) == ["out"]
    assert Path("out").read_text() == "old"


@failures
def test_a_failure_leaves_no_new_file(folder, error):
    with pytest.raises((OSError, KeyboardInterrupt)):
        write_and_fail("out", "wb", error)
    assert others(folder) == []


def test_a_failure_names_the_file(folder):
    with pytest.raises(OSError, match="No space left on device: 'out'") as caught, replacing("out"):
        raise FULL
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="out: 49 requested and 8 written"), replacing("out"):
        raise OSError("49 requested and 8 written")  # as NumPy says it


def test_the_file_appears_at_the_end(folder):
    with replacing("out") as file:
        file.write("a\nb\r\n")
        assert not Path("out").exists()
    assert Path("out").read_bytes() == b"a\nb\r\n"
    assert others(folder) == ["out"]


@posix
def test_permissions_are_kept(folder):
    Path("out").write_text("old")
    os.chmod("out", 0o640)
    with replacing("out") as file:
        file.write("new")
    assert stat.S_IMODE(os.stat("out").st_mode) == 0o640
    before = os.umask(0o027)
    try:
        with replacing("fresh") as file:
            file.write("new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat("fresh").st_mode) == 0o640


@posix
def test_links_are_followed(folder):
    os.mkdir("elsewhere")
    Path("elsewhere/target").write_text("old")
    os.symlink("elsewhere/target", "first")
    os.symlink("first", "link")
    with replacing("link") as file:
        file.write("new")
    assert os.path.islink("link")
    assert os.path.islink("first")
    assert Path("elsewhere/target").read_text() == "new"
    assert os.listdir("elsewhere") == ["target"]
    os.symlink("elsewhere/absent", "dangling")
    with replacing("dangling") as file:
        file.write("new")
    assert Path("elsewhere/absent").read_text() == "new"
    os.symlink("loop", "loop")
    with pytest.raises(OSError, match="loop"), replacing("loop"):
        pass


@posix
@pytest.mark.skipif(as_root, reason="root may write everywhere")
def test_a_file_that_may_not_be_written(folder):
    Path("out").write_text("old")
    os.chmod("out", 0o444)
    with pytest.raises(PermissionError, match="out"), replacing("out"):
        pass


def test_a_file_that_cannot_be_replaced_is_written_in_place(folder, monkeypatch):
    def busy(source, target):
        raise OSError(errno.EBUSY, "Device or resource busy", source, None, target)

    monkeypatch.setattr(files.os, "replace", busy)  # as for a file mounted on its own
    Path("out").write_text("old and longer")
    number = os.stat("out").st_ino
    with replacing("out") as file:
        file.write("new")
    assert Path("out").read_text() == "new"
    assert os.stat("out").st_ino == number
    assert others(folder) == ["out"]
    with pytest.raises(OSError, match="absent"), replacing("absent"):
        pass


@posix
def test_pipes_and_devices_are_written_to(folder):
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    with replacing("pipe") as file:
        file.write("new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    with replacing("/dev/null") as file:
        file.write("new")
    assert not stat.S_ISREG(os.stat("/dev/null").st_mode)


@posix
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_in_a_file_keeps_what_was_printed(folder, name):
    if not os.path.exists(name):
        pytest.skip(f"there is no {name}")
    program = (
        "from fastrbhc._files import replacing\n"
        "print('before')\n"
        f"with replacing({name!r}) as file: file.write('between\\n')\n"
        "print('after')\n"
    )
    with open("out", "w") as out:
        subprocess.run([sys.executable, "-c", program], stdout=out, check=True)
    assert Path("out").read_text() == "before\nbetween\nafter\n"


# The command line

OUTPUTS = [
    "--labels=out.csv",
    "--tree=out.nwk",
    "--tree=out.json",
    "--tree=out.npy",
    "--plot=o.png",
]


def cluster(*options):
    command = ["cluster", "table.csv", "--id", "name", "--family", "ward", "--clusters", "2"]
    return cli.main([*command, *options])


@failures
@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_of_cluster(folder, monkeypatch, capsys, output, error):
    name = output.partition("=")[2]
    Path(name).write_text("old")
    true_open = files._opened

    def failing(file, mode):
        opened = Failing(true_open(file, mode), error)
        opened.left = 0 if name.endswith((".nwk", ".json")) else 1  # these write once
        return opened

    monkeypatch.setattr(files, "_opened", failing)
    code = cluster(output)
    assert code == (2 if error is FULL else 130)
    assert others(folder) == [name]
    assert Path(name).read_text() == "old"
    if error is FULL:
        message = f"fastrbhc: error: {name}: No space left on device\n"
        assert capsys.readouterr().err == message
    monkeypatch.setattr(files, "_opened", true_open)
    assert cluster(output) == 0
    assert others(folder) == [name]
    assert Path(name).stat().st_size > 10


@failures
def test_outputs_of_reproduce(folder, monkeypatch, error):
    for name in ("out.json", "out.png"):
        Path(name).write_text("old")
    true_open = files._opened
    monkeypatch.setattr(files, "_opened", lambda *given: Failing(true_open(*given), error))
    command = ["reproduce", "figure1", "--trials", "2"]
    for option in (["--json", "out.json"], ["--plot", "out.png"]):
        assert cli.main([*command, *option]) == (2 if error is FULL else 130)
    assert others(folder) == ["out.json", "out.png"]
    assert {Path(name).read_text() for name in others(folder)} == {"old"}


def test_a_device_that_is_full(folder, capsys):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    os.symlink("/dev/full", "out.csv")
    assert cluster("--labels", "out.csv") == 2
    assert "out.csv: No space left on device" in capsys.readouterr().err
    assert others(folder) == ["out.csv"]


@posix
def test_labels_on_standard_output(folder):
    command = [sys.executable, "-m", "fastrbhc", "cluster", "table.csv", "--id", "name"]
    options = ["--family", "ward", "--clusters", "2", "--labels", "/dev/stdout"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("id,cluster\na,0\nb,0\nc,1\nd,1\nwrote /dev/stdout\n")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--plot=tree.docx", "pictures cannot be written as .docx"),
        ("--tree=tree.csv", "trees are not written as .csv"),
        ("--tree=tree.tre", "trees are not written as .tre"),
        ("--labels=", "no name of a file"),
        ("--labels=new/", "is a directory"),
    ],
)
def test_wrong_names_are_noticed_before_the_work(folder, monkeypatch, capsys, option, message):
    def worked(*given, **options):
        raise AssertionError("the table was read")

    monkeypatch.setattr("fastrbhc.cli.tables.read_table", worked)
    assert cluster(option) == 2
    assert message in capsys.readouterr().err
    assert others(folder) == []


def test_plots_without_matplotlib_are_refused_before_the_work(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.backend_bases", None)
    assert cluster("--plot", "tree.png") == 2
    assert "--plot needs matplotlib" in capsys.readouterr().err


def test_the_demo_looks_at_the_suffix_first(folder, monkeypatch, capsys):
    monkeypatch.setattr("fastrbhc.cli.demo.run", None)
    assert cli.main(["demo", "--output", "digits.docx"]) == 2
    assert "pictures cannot be written as .docx" in capsys.readouterr().err


def test_a_picture_without_suffix_is_what_was_asked_for(folder):
    assert cluster("--plot", "picture") == 0
    assert Path("picture").read_bytes().startswith(b"\x89PNG")


# Arrays


def header_of(shape, dtype="<f8"):
    content = {"descr": dtype, "fortran_order": False, "shape": shape}
    with open("header", "wb") as file:
        np.lib.format.write_array_header_1_0(file, content)
    return Path("header").read_bytes()


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((10**12, 3), "<f8", "it is cut short"),
        ((3, 3), "<f8", "it is cut short: an array of shape .3, 3. takes 72 bytes, and it has 48"),
        ((10**12, 3), "|V0", "1,000,000,000,000 x 3 values"),
        ((-1, 3), "<f8", r"its shape is \(-1, 3\)"),
        ((2, 3), "|O", "Python objects"),
    ],
)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_headers_that_promise_too_much(folder, shape, dtype, message, suffix):
    content = header_of(shape, dtype) + bytes(48)
    path = Path(f"x{suffix}")
    if suffix == ".npy":
        path.write_bytes(content)
    else:
        with files.zipfile.ZipFile(path, "w") as archive:
            archive.writestr("X.npy", content)
    with pytest.raises((ValueError, MemoryError), match=rf"{path.name}.*{message}"):
        files.Arrays(path).matrix()


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"\x80\x04\x95", b"\x93NUMPY\x01", b"PK\x03\x04"]
)
def test_files_that_are_no_arrays(folder, content):
    Path("x.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.npy cannot be read"):
        files.Arrays(Path("x.npy")).matrix()


@pytest.mark.parametrize("byte", range(30, 400, 10))
def test_damaged_archives(folder, byte):
    np.savez_compressed("x.npz", X=np.arange(200.0).reshape(100, 2))
    content = bytearray(Path("x.npz").read_bytes())
    if byte >= len(content):
        pytest.skip("beyond the end")
    content[byte] ^= 0x5A
    Path("x.npz").write_bytes(content)
    with contextlib.suppress(files._FileError):  # which names the file
        found = files.Arrays(Path("x.npz")).matrix()
        np.testing.assert_array_equal(found[:, 0], range(0, 200, 2))


def test_pictures_in_open_files(tmp_path):
    """As notebooks draw them; with a path, the suffix says in which format."""
    figure = pytest.importorskip("matplotlib.figure").Figure()
    picture = io.BytesIO()
    files.save_picture(figure, picture)
    assert picture.getvalue().startswith(b"\x89PNG")
    files.save_picture(figure, tmp_path / "picture.svg")
    assert b"<svg" in (tmp_path / "picture.svg").read_bytes()
