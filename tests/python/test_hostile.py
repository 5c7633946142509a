#!/usr/bin/env python3
"""The battery of make_hostile.py against the program: each file ends within the limits, with the right exit status, exactly one
line on stderr that names the file and what is at fault, and nothing written; what is sound after all (status 0) is written.

  test_hostile.py                    build/relayout optimize
  test_hostile.py --roundtrip P      the reader and writer alone (tests/unit/onnx_roundtrip.c)
  test_hostile.py bomb ext_          cases whose name contains one of these
  test_hostile.py functions          certificates of models with functions, of which the part of a function is false, alone
Each is also run (`relayout run`), where it need only end in time without a crash.

  --all                              every op with each kind of missing input, not a fifth of these
  --sanitized                        the program has AddressSanitizer: no limit of address space, more time
"""
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common
import funcgen
import make_hostile

SPACE = 3 << 30     # bytes of address space
HELD = 64 << 20     # bytes resident, and
TIMES = 20          # times the file: a bomb of 10 MiB may take 264 MiB
SECONDS = 10
FUNCTION_SEEDS = (1, 5, 15)  # of funcgen.py
REFUSED = (2, 3, 4, 5, 7)


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
        ended = os.pidfd_open(p.pid)  # told at once: Popen.wait looks again and again
        over = not select.select([ended], [], [], SECONDS * (12 if sanitized else 1))[0]
        os.close(ended)
        if over:
            p.kill()
        status = p.wait()
        if over:
            return 124, time.perf_counter() - start, 0, ""
        seconds = time.perf_counter() - start
        err.seek(0)
        return status, seconds, int(peak.read() or 0) * 1024, err.read().decode(errors="replace")


def listing(folder):
    return sorted(f"{base}/{name}" for base, folders, files in os.walk(folder) for name in folders + files)


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
    for p in map(Path, reversed(wrote)):
        p.rmdir() if p.is_dir() else p.unlink()
    return why, seconds, held


def function_proofs(lines):
    """(what is done to it, a certificate of which the part of a function is false): lines of one with functions; nothing else is changed."""
    heads = [i for i, x in enumerate(lines) if x.startswith("function ")]
    first, ends = heads[0], [*heads[1:], len(lines) - 1]
    word, index, domain, name = lines[first].split(" ")
    parts = [lines[a:b] for a, b in zip(heads, ends)]
    with_head = lambda head: lines[:first] + [head] + lines[first + 1:]
    for x in ("4294967294", "4294967296", "999", "-1", "9" * 40, "0x0", ""):
        yield f"place {x[:12]}", with_head(f"{word} {x} {domain} {name}")
    for x in ("", "x", '"', '"\\u0000"', '"\x1b[2J"', '"' + "f" * 100_000 + '"', '"no such"', f"{name} {name}"):
        yield f"name {x[:12]!r}", with_head(f"{word} {index} {domain} {x}")
    yield "domain", with_head(f'{word} {index} "elsewhere" {name}')
    yield "head alone", lines[:first + 1]
    yield "head and end", lines[:first + 1] + ["end"]
    yield "no head", lines[:first] + lines[first + 1:]
    yield "part left out", lines[:first] + lines[ends[0]:]
    yield "part twice", lines[:ends[0]] + parts[0] + lines[ends[0]:]
    yield "a place too large, then from the start", lines[:first] + [f"{word} 4294967294 {domain} {name}", *parts[0][1:]] + lines[first:]
    yield "many heads", lines[:first] + [f"{word} {k} {domain} {name}" for k in range(200_000)] + lines[first:]
    yield "many parts", lines[:first] + [x for k in range(5_000) for x in (f"{word} {k} {domain} {name}", *parts[0][1:])] + ["end"]
    yield "the graph's objective again", lines[:first + 1] + ["objective bytes"] + lines[first + 1:]
    yield "the graph's part", lines[:first + 1] + lines[2:first] + lines[ends[0]:]
    yield "behind the end", lines + parts[0]
    for k in range(first, ends[0]):
        yield f"cut behind line {k + 1}", lines[:k + 1]
    if len(parts) > 1:
        yield "parts in another order", lines[:first] + parts[1] + parts[0] + lines[ends[1]:]
        yield "parts under each other's heads", lines[:first] + [parts[0][0], *parts[1][1:], parts[1][0], *parts[0][1:]] + lines[ends[1]:]


def check_proofs(prog, build, tmp, sanitized):
    """Certificates with parts of functions that no program should trust: (how many were refused as they should be, what is wrong)."""
    npass, bad, model, out, proof = 0, [], tmp / "functions.onnx", tmp / "written.onnx", tmp / "p.proof"
    for seed in FUNCTION_SEEDS:
        model.write_bytes(funcgen.make(seed)[0].SerializeToString())
        subprocess.run([prog, "optimize", model, "-o", out, "--target", "onnx", "--proof", proof], check=True, stdout=subprocess.DEVNULL)
        command = [prog, "check-proof", str(proof), str(model), str(out), "--target", "onnx"]
        lines = proof.read_text().split("\n")[:-1]
        if execute(command, build, sanitized)[0] != 0:
            bad.append(f"functions {seed}: the certificate itself is refused")
        for what, false in function_proofs(lines):
            proof.write_text("\n".join(false) + "\n")
            status, seconds, held, err = execute(command, build, sanitized)
            size = proof.stat().st_size
            why = "" if status in REFUSED and len(err.split("\n")) == 2 and not any(ord(c) < 32 or ord(c) == 127 for c in err[:-1]) else f"status {status}: {err[:300]!r}"
            if not why and not sanitized and held > HELD + TIMES * size:
                why = f"{held >> 20} MiB resident for {size >> 10} KiB"
            npass += not why
            bad += [f"functions {seed}, {what}: {why}"] if why else []
    return npass, bad


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
    if not args.roundtrip and (not args.words or "functions" in args.words):
        with tempfile.TemporaryDirectory() as tmp:
            refused, wrong = check_proofs(prog, build, Path(tmp), args.sanitized)
            npass, bad = npass + refused, bad + wrong
            print("\n".join([*wrong, f"{refused} certificates with a false part of a function refused"]))
    print(f"slowest {slowest[0]:.2f} s ({slowest[1]}), largest {largest[0] >> 20} MiB ({largest[1]})")
    return common.closing(npass, len(bad))


if __name__ == "__main__":
    sys.exit(main())
