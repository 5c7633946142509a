"""What the examples share: a model to begin with, and how to leave where a package is missing."""
import argparse
import importlib
import sys
from pathlib import Path

MODEL = Path(__file__).resolve().parents[2] / "models" / "channels_last_cnn.onnx"


def need(*packages):
    """The packages; ends the example with status 77 (skipped) where one is missing."""
    found = []
    for name in packages:
        try:
            found.append(importlib.import_module(name))
        except ImportError:
            print(f"the package {name} is not installed")
            sys.exit(77)
    return found


def out_folder():
    p = argparse.ArgumentParser()
    p.add_argument("--out", type=Path, default=Path("."), help="where files go")
    return p.parse_args().out


def say(report):
    c = report["conversions"]
    print(f"{c['before']} -> {c['after']} conversions ({c['proof']})")
