#!/usr/bin/env python3
"""The battery of make_hostile.py against the program: each file ends within the limits, with the right exit status, exactly one
line on stderr that names the file and what is at fault, and nothing written; what is sound after all (status 0) is written.

  test_hostile.py                    build/relayout optimize
  test_hostile.py --roundtrip P      the reader and writer alone (tests/unit/onnx_roundtrip.c)
  test_hostile.py bomb ext_          cases whose name contains one of these
Each is also run (`relayout run`), where it need only end in time without a crash.

  --all                              every op with each kind of missing input, not a fifth of these
  --sanitized                        the program has AddressSanitizer: no limit of address space, more time
"""
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common
import make_hostile

SPACE = 3 << 30     # bytes of address space
HELD = 64 << 20     # bytes resident, and
TIMES = 20          # times the file: a bomb of 10 MiB may take 264 MiB
SECONDS = 10


def set_limits(sanitized):
    """Of this process, too: its children have them without a fork that copies it."""
    if not sanitized:
        resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def execute(command, build, sanitized):
    """Exit status (negative: a signal), seconds, resident bytes, stderr. By way of `peak`: a child's peak begins with ours."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as err, tempfile.NamedTemporaryFile("r") as peak:
        p = subprocess.Popen([build / "tests" / "peak", peak.name, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        try:
            status = p.wait(SECONDS * (12 if sanitized else 1))
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
            return 124, time.perf_counter() - start, 0, ""
        seconds = time.perf_counter() - start
        err.seek(0)
        return status, seconds, int(peak.read() or 0) * 1024, err.read().decode(errors="replace")


def listing(folder):
    return sorted(str(p) for p in folder.rglob("*"))


def judge(case, status, seconds, held, err, out, sanitized):
    """What is wrong with this run, or ""."""
    if status == 124:
        return f"no end after {seconds:.0f} s"
    if status < 0 or "Sanitizer" in err or "runtime error" in err:
        return f"crashed ({status}): {err.strip().splitlines()[:2]}"
    if status not in case.status:
        return f"status {status} instead of {case.status}: {err.strip()[:300]}"
    size = case.path.stat().st_size if case.path.is_file() else 0
    if not sanitized and held > HELD + TIMES * size:
        return f"{held >> 20} MiB resident for {size >> 10} KiB"
    if status == 0:
        return "" if case.out or out.exists() else "nothing written"
    lines = err.split("\n")
    if len(lines) != 2 or lines[1] or not lines[0]:
        return f"{len(lines) - 1} lines on stderr: {err[:300]!r}"
    if any(ord(c) < 32 or ord(c) == 127 for c in lines[0]):
        return f"control characters in {lines[0]!r}"
    missing = [s for s in (*case.says, *(() if case.out else (case.path.name,))) if s not in lines[0]]
    return f"the message lacks {missing}: {lines[0]}" if missing else ""


def run_model(case, prog, build, sanitized):
    """`relayout run`: whatever it says, it ends and does not crash."""
    status, seconds, _, err = execute([prog, "run", str(case.path)], build, sanitized)
    bad = status not in (0, *make_hostile.FAILS) or "Sanitizer" in err or "runtime error" in err
    return f"run: status {status} after {seconds:.1f} s: {err.strip()[:300]}" if bad else ""


def run_case(case, command, tmp, build, sanitized):
    out = Path(case.out) if case.out else tmp / "out.onnx"
    before = listing(case.path.parent) if case.path.parent.is_dir() else []
    status, seconds, held, err = execute(command(case.path, out), build, sanitized)
    why = judge(case, status, seconds, held, err, out, sanitized)
    after = listing(case.path.parent) if case.path.parent.is_dir() else []
    if not why and before != after:
        why = f"left behind: {sorted(set(after) - set(before))}"
    wrote = listing(tmp)
    if not why and status != 0 and wrote:
        why = f"written in spite of status {status}: {wrote}"
    if not why and any(".tmp" in w for w in wrote):
        why = f"left behind: {wrote}"
    for p in sorted(tmp.rglob("*"), reverse=True):
        p.rmdir() if p.is_dir() else p.unlink()
    return why, seconds, held


def main():
    args = common.arguments(__doc__)
    args.add_argument("--roundtrip", type=Path, help="run this onnx_roundtrip instead of relayout")
    args.add_argument("--target", default="onnx")
    args.add_argument("--sanitized", action="store_true")
    args.add_argument("--all", action="store_true", help="every op with each kind of missing input, not a fifth of these")
    args.add_argument("-v", "--verbose", action="store_true")
    args.add_argument("words", nargs="*")
    args = args.parse_args()
    if args.roundtrip:
        command = lambda i, o: [str(args.roundtrip.resolve()), "-w", str(i), str(o)]
    else:
        prog = common.program(args)
        command = lambda i, o: [prog, "optimize", str(i), "-o", str(o), "--target", args.target]
    build = Path(args.build).resolve()
    set_limits(args.sanitized)
    npass, bad, slowest, largest = 0, [], (0, ""), (0, "")
    with tempfile.TemporaryDirectory() as tmp, tempfile.TemporaryDirectory() as out:
        for k, case in enumerate(make_hostile.battery(Path(tmp))):
            name = f"{case.path.parent.name}/{case.path.name}" + (f" -> {case.out}" if case.out else "")
            if args.words and not any(w in name for w in args.words):
                continue
            if case.path.parent.name == "bare" and k % 5 and not args.all:
                continue
            why, seconds, held = run_case(case, command, Path(out), build, args.sanitized)
            if not why and not args.roundtrip and not case.out and case.path.is_file() and case.path.stat().st_size < make_hostile.BOMB:
                why = run_model(case, prog, build, args.sanitized)
            slowest, largest = max(slowest, (seconds, name)), max(largest, (held, name))
            if why:
                bad.append(name)
                print(f"{name}: {why}", flush=True)
            else:
                npass += 1
                if args.verbose:
                    print(f"{name}: ok ({seconds:.2f} s, {held >> 20} MiB)")
    print(f"slowest {slowest[0]:.2f} s ({slowest[1]}), largest {largest[0] >> 20} MiB ({largest[1]})")
    return common.closing(npass, len(bad))


if __name__ == "__main__":
    sys.exit(main())
