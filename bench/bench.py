"""What the benchmarks share: optimized copies of the sample models, the machine in words, result files."""
import os
import platform
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import onnx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))

import common  # noqa: E402
import zoo  # noqa: E402


def arguments(description):
    p = common.arguments(description)
    p.add_argument("models", nargs="*", help="parts of names; none: all")
    p.add_argument("--target", default="generic")
    p.add_argument("--result", help="name of the file in bench/results to write (default: none where models are named)")
    return p


def models(args):
    names = zoo.chosen(args.models)
    if not names:
        print(f"skipped: no sample models in {zoo.ZOO}")
        sys.exit(0)
    return names


QUANTIZED = ("tensor", "channel", "dynamic")


class Samples:
    """What onnxruntime's quantizer asks for ranges."""
    def __init__(self, x):
        self.left = [x]

    def get_next(self):
        return self.left.pop() if self.left else None


def quantized(path, how):
    """The model in bytes, beside it: `tensor` and `channel`, QuantizeLinear and DequantizeLinear around each op; `dynamic`, ranges are found at each run."""
    from onnxruntime import quantization as q  # not needed otherwise
    made = path.with_suffix(f".{how}.onnx")
    if made.exists():
        return made
    with tempfile.TemporaryDirectory() as tmp:
        whole = Path(tmp) / "whole.onnx"
        q.quant_pre_process(path, whole, skip_symbolic_shape=True)
        if how == "dynamic":
            q.quantize_dynamic(whole, made)
        else:
            q.quantize_static(whole, made, Samples(zoo.inputs_of(onnx.load(path, load_external_data=False))), per_channel=how == "channel")
    return made


def optimized(prog, name, args, path=None):
    """Path of the rewritten model, made now of the sample model or of `path`; None, and a line, where relayout fails."""
    out = args.build / "bench" / args.target / f"{name}.onnx"
    out.parent.mkdir(parents=True, exist_ok=True)
    r = common.optimize(prog, path or zoo.filled(name, args.build / "zoo"), out, args.target)
    if r.status:
        print(f"{name}: {r.text}")
        return None
    return out


def machine():
    cpu = next((s.split(":", 1)[1].strip() for s in Path("/proc/cpuinfo").read_text().splitlines() if s.startswith("model name")), platform.machine())
    flags = "AVX-512" if "avx512f" in Path("/proc/cpuinfo").read_text() else "no AVX-512"
    memory = next(int(s.split()[1]) for s in Path("/proc/meminfo").read_text().splitlines() if s.startswith("MemTotal")) / 2 ** 20
    return f"{cpu}, {os.cpu_count()} cores, {flags}, {memory:.0f} GiB, {platform.system()} {platform.release()}"


def versions(*packages):
    out = []
    for p in packages:
        try:
            out.append(f"{p} {metadata.version(p)}")
        except metadata.PackageNotFoundError:
            pass
    git = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"], capture_output=True, text=True)
    out.append(f"relayout {git.stdout.strip() or 'not committed'}")
    return ", ".join(out)


def command():
    return " ".join(["bench/" + Path(sys.argv[0]).name, *sys.argv[1:]])


def table(head, rows):
    """A Markdown table; the first column is text, the others are numbers."""
    line = lambda cells: "| " + " | ".join(str(c) for c in cells) + " |"
    return "\n".join([line(head), line(["---"] + ["---:"] * (len(head) - 1)), *map(line, rows)])


def write(args, default, title, text, *packages):
    """Prints the result and keeps it in bench/results."""
    name = args.result or (None if args.models else default)
    body = f"# {title}\n\nMade by `{command()}`.\nMachine: {machine()}.\nVersions: {versions(*packages)}.\n\n{text}\n"
    print("\n" + body)
    if name:
        path = HERE / "results" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(body)
        print(f"written to {path}")
