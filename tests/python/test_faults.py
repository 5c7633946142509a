#!/usr/bin/env python3
"""Faults around the program: what cannot be written, is written twice, or is cut short.  The output is the old file or the whole new
one, the status says what happened, and no temporary file stays.

  test_faults.py             100 kills
  test_faults.py --kills N   kills at N random moments, half of them while an old file is replaced
"""
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common

MODEL = common.ROOT / "models" / "attention_block.onnx"
NOBODY = 65534


class Faults:
    def __init__(self, prog, folder):
        self.prog, self.folder, self.bad, self.npass = prog, folder, [], 0
        folder.chmod(0o755)
        self.new = {}
        for target in ("onnx", "generic"):
            path = folder / f"{target}.onnx"
            self.run("-o", path, "--target", target)
            self.new[target] = path.read_bytes()
            path.unlink()

    def command(self, *args, model=MODEL):
        return [self.prog, "optimize", str(model), *map(str, args)]

    def run(self, *args, model=MODEL, **more):
        more.setdefault("stdout", subprocess.DEVNULL)
        return subprocess.run(self.command(*args, model=model), stderr=subprocess.PIPE, text=True, timeout=60, **more)

    def check(self, ok, what):
        self.npass += bool(ok)
        if not ok:
            self.bad.append(what)
            print(f"failed: {what}", flush=True)

    def refused(self, p, what, *words, status=3):
        line = p.stderr.strip()
        self.check(p.returncode == status and line.count("\n") == 0 and all(w in line for w in words), f"{what}: {p.returncode}: {line!r}")

    def left(self):
        return [p.name for p in self.folder.rglob("*") if ".relayout-" in p.name]


def refusals(f):
    """Each names what it could not write, and changes nothing."""
    out = f.folder / "x.onnx"
    f.refused(f.run("-o", "/dev/full"), "a full device", "/dev/full", "No space")
    with open("/dev/full", "w") as full:
        f.refused(f.run("-o", out, stdout=full), "stdout is full", "stdout", "No space")
    f.check(out.read_bytes() == f.new["generic"], "the report could not be written: the model is whole")
    out.unlink()
    f.refused(f.run("-o", out, "--json", f.folder / "none" / "r.json"), "no folder for the report", "none/r.json")
    f.refused(f.run("-o", out, "--target", "onnx", "--proof", f.folder / "none" / "p"), "no folder for the certificate", "none/p")
    f.check(not out.exists(), "no model where the report has no folder")
    f.refused(f.run("-o", f.folder / "none" / "x.onnx"), "a missing folder", "none/x.onnx", "No such file")
    f.refused(f.run("-o", MODEL / "x.onnx"), "a file for a folder", "Not a directory")
    (f.folder / "taken" / MODEL.name).mkdir(parents=True)
    f.refused(f.run("-o", f.folder / "taken"), "a folder for a file", "Is a directory")
    f.refused(f.run("-o", f.folder / ("x" * 300)), "a long name", "too long")
    larger = MODEL.with_name("channels_last_cnn.onnx")
    f.refused(f.run("-o", out, "--memory-limit", "1", model=larger), "a low limit of memory", "over the limit of 1048576 bytes of memory", status=5)
    f.check(not out.exists(), "nothing written over the limit")
    f.refused(f.run("-o", out, "--memory-limit", "0"), "no limit of memory", "--memory-limit", status=2)


def no_room(f):
    """A file that the process has no room to map is no file that cannot be read."""
    large = f.folder / "large.onnx"
    with open(large, "wb") as file:
        file.truncate(4 << 30)
    p = f.run("-o", f.folder / "x.onnx", model=large, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)))
    f.refused(p, "no room for the model", "large.onnx", "Cannot allocate memory", status=5)
    large.unlink()


def cut_short(f):
    """write stops in the middle: a short count first, then an error."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))
    for old in (None, b"old"):
        out = f.folder / "short.onnx"
        if old:
            out.write_bytes(old)
        f.refused(f.run("-o", out, preexec_fn=limit, restore_signals=False), "cut short", "short.onnx", "too large")
        f.check(out.read_bytes() == old if old else not out.exists(), "cut short: the old file stays")
    out.unlink()


def permissions(f):
    """As a user who may not write there (root may)."""
    me = os.getuid() == 0
    who = (lambda: (os.setgid(NOBODY), os.setuid(NOBODY))) if me else None
    folder = f.folder / "readonly"
    folder.mkdir()
    old = folder / "old.onnx"
    old.write_bytes(b"old")
    old.chmod(0o444)
    folder.chmod(0o555)
    model = f.folder / "in.onnx"
    shutil.copy(MODEL, model)
    model.chmod(0o644)
    prog = f.prog
    f.prog = shutil.copy(prog, f.folder / "relayout")  # where everybody may run it
    f.refused(f.run("-o", folder / "new.onnx", model=model, preexec_fn=who), "a folder that is read-only", "denied")
    folder.chmod(0o777)
    f.refused(f.run("-o", old, model=model, preexec_fn=who), "a file that is read-only", "denied")
    f.check(old.read_bytes() == b"old", "a file that is read-only keeps its bytes")
    f.prog = prog


def nowhere(f):
    """Links stay links: those that lead to no file are refused."""
    links = {"dangling": ("gone.onnx", "No such file"), "away": ("gone/x.onnx", "No such file"), "loop": ("pool", "levels of symbolic links"), "pool": ("loop", "levels of symbolic links")}
    for name, (to, _) in links.items():
        (f.folder / name).symlink_to(to)
    for name, (to, why) in links.items():
        f.refused(f.run("-o", f.folder / name), f"a link {name}", f"{name}: cannot write: a link that leads to no file", why)
        f.refused(f.run("-o", f.folder / "made.onnx", "--target", "onnx", "--proof", f.folder / name), f"a certificate to a link {name}", name, why)
        f.check(os.readlink(f.folder / name) == to and not (f.folder / "gone.onnx").exists(), f"the link {name} stays")
    for name in [*links, "made.onnx"]:
        (f.folder / name).unlink()


def onto_itself(f):
    path, link = f.folder / "itself.onnx", f.folder / "link.onnx"
    for out in (path, link):
        shutil.copy(MODEL, path)
        path.chmod(0o640)
        if not link.exists():
            link.symlink_to(path.name)
        p = f.run("-o", out, model=path)
        f.check(p.returncode == 0 and path.read_bytes() == f.new["generic"], f"output is input ({out.name}): {p.stderr}")
        f.check(path.stat().st_mode & 0o777 == 0o640 and link.is_symlink(), f"output is input ({out.name}): its mode, and the link, stay")


def together(f):
    """Several runs that write the same path: one of them is there in the end, whole."""
    for _ in range(5):
        out = f.folder / "same.onnx"
        runs = [subprocess.Popen(f.command("-o", out, "--target", t), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for t in f.new for _ in range(3)]
        for p in runs:
            err = p.communicate(timeout=60)[1]
            f.check(p.returncode == 0, f"one of several runs: {p.returncode}: {err}")
        f.check(out.read_bytes() in f.new.values(), "several runs: the file is that of none of them")


def killed(f, kills):
    """Returns how many of the kills came before the end, and how many found the new file."""
    start = time.perf_counter()
    f.run("-o", f.folder / "warm.onnx")
    whole, r, early, written, stayed = time.perf_counter() - start, random.Random(1), 0, 0, 0
    for k in range(kills):
        out, old = f.folder / f"killed{k}.onnx", b"old" * 1000 if k % 2 else None
        if old:
            out.write_bytes(old)
        p = subprocess.Popen(f.command("-o", out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(r.uniform(0, 1.2 * whole))
        p.send_signal(signal.SIGKILL)
        early += p.wait() < 0
        now = out.read_bytes() if out.exists() else None
        f.check(now in (old, f.new["generic"]), f"kill {k}: neither the old file nor the new one, {len(now or b'')} bytes")
        written += now == f.new["generic"]
        names = f.left()
        stayed += len(names)
        f.check(old or not names, f"kill {k}: left {names}")
        for name in names:
            (f.folder / name).unlink()
    f.check(stayed <= max(1, kills // 50), f"{stayed} temporary files after {kills} kills")
    return early, written, stayed


def ended(f):
    """Whoever ends a call for several models ends those that are being worked on."""
    models = [f.folder / f"slow{i}.rlt" for i in range(2)]
    for m in models:
        shutil.copy(common.ROOT / "tests" / "unit" / "partial_rotary.rlt", m)
    for signum in (signal.SIGTERM, signal.SIGKILL):
        p = subprocess.Popen(f.command("-o", f"{f.folder}/ended/", "--target", "ort", "--jobs", "2", *models[1:], model=models[0]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        children = []
        while len(children) < 2 and p.poll() is None:
            children = Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()
        p.send_signal(signum)
        f.check(p.wait() == -signum and len(children) == 2, f"{signum.name}: {len(children)} processes at work")
        end = time.monotonic() + 0.5
        while any(Path(f"/proc/{c}").exists() for c in children) and time.monotonic() < end:
            time.sleep(0.01)
        alive = [c for c in children if Path(f"/proc/{c}").exists() and ") Z" not in Path(f"/proc/{c}/stat").read_text()]
        f.check(not alive and not list((f.folder / "ended").glob("*")), f"{signum.name}: they end, too: {alive}")


def slow_proof(f):
    """A model with a part that is not proved within its limits: that part is given up, the others stay, and it is said."""
    src = common.ROOT / "tests" / "unit" / "partial_rotary.rlt"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    p = f.run("-o", f.folder / "slow.out.onnx", "--target", "ort", "--time-limit", "0.02", model=src, stdout=subprocess.PIPE)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    f.check(p.returncode == 0 and "(proved; that many may not be reached)" in p.stdout and seconds < 20, f"slow proof: {p.returncode}, {seconds:.1f} s of CPU")


def main():
    args = common.arguments(__doc__)
    args.add_argument("--kills", type=int, default=100)
    args = args.parse_args()
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        f = Faults(common.program(args), Path(tmp))
        for part in (refusals, no_room, cut_short, permissions, nowhere, onto_itself, together, ended, slow_proof):
            part(f)
            f.check(not f.left(), f"{part.__name__}: left {f.left()}")
        early, written, stayed = killed(f, args.kills)
    print(f"{args.kills} kills, {early} before the end, {written} found the new file, {stayed} left a temporary one")
    return common.closing(f.npass, len(f.bad))


if __name__ == "__main__":
    sys.exit(main())
