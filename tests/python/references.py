"""What a run is compared with, kept in a folder, so that a machine whose time is short need not compute it.

  arrays = references.kept(folder, "reference", model, inputs, make)

model: bytes, as they were run; inputs: {name: array}; make(): {name: array}.  The file's name has the hash of all of them, so that
what was made of another model, other inputs or in another way is never taken.  The program's reference kernels are not part of it: with other ones, begin
with an empty folder.
"""
import hashlib
import io
from pathlib import Path

import numpy as np

import zoo

MOST = 1 << 20  # bytes of a file; larger ones are not kept


def key(what, model, inputs):
    h = hashlib.sha256(what.encode())
    h.update(hashlib.sha256(model).digest())
    for name, a in sorted(inputs.items()):
        h.update(f"\n{name} {a.dtype.str} {a.shape}\n".encode())
        h.update(np.ascontiguousarray(a).tobytes())
    return f"{what}-{h.hexdigest()[:32]}.npz"


def kept(folder, what, model, inputs, make):
    """make()'s arrays; those in the folder where they are there.  folder: None for none."""
    if folder is None:
        return make()
    path = Path(folder) / key(what, model, inputs)
    if path.exists():
        with np.load(path, allow_pickle=False) as found:
            return dict(found)
    arrays, file = make(), io.BytesIO()
    np.savez_compressed(file, **arrays)
    if file.tell() <= MOST:
        path.parent.mkdir(parents=True, exist_ok=True)
        zoo.replace(path, lambda tmp: tmp.write_bytes(file.getbuffer()))
    return arrays


def there(folder, what, model, inputs):
    """Are they kept? Large ones are not."""
    return folder is not None and (Path(folder) / key(what, model, inputs)).exists()
