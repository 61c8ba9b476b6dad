"""Files of learned predictors: saved whole or not at all, loaded or refused.

A file is a ZIP archive with ``header.json`` (format, version, the predictor's short form, names in
order of their codes, jobs in flight, shapes) and, for each array, the numbers of its blocks that
hold anything but zeros, and these blocks, both compressed (Zstandard); so a large table takes the
room that is used of it. Each member has a check sum.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import zstandard

from foresail import __version__
from foresail.kernels.columns import USER
from foresail.model.distribution import Floats, Integers
from foresail.model.documents import require_end
from foresail.model.errors import InputError
from foresail.model.whole_files import write_whole
from foresail.predictors.stepped import PredictorSnapshot, SteppedPredictor

FORMAT: Final = "foresail learned state"
VERSION: Final = 2

_HEADER: Final = "header.json"
_ARRAYS: Final = ("model", "users", "jobs", "specs", "summaries")
_BLOCK: Final = 512
_DAMAGED: Final = (
    zipfile.BadZipFile,
    zstandard.ZstdError,
    *(KeyError, ValueError, TypeError, IndexError, AttributeError, EOFError),
)
_EXPECTED: Final = "a file that `foresail predict train` or `foresail run --learned` has written"

Predictor = TypeVar("Predictor", bound=SteppedPredictor)


@dataclass(frozen=True, slots=True)
class StateHeader:
    """Header of a file."""

    predictor: str
    """Short form of the predictor, with the parameters that differ from their defaults."""
    written_by: str = ""
    """Writer of the file, for whoever shares it; empty if that does not matter."""
    foresail: str = __version__
    """Version of Foresail that wrote it."""


def save_state(path: Path, predictor: object, header: StateHeader) -> None:
    """Save what a predictor knows, jobs in flight included; the file is replaced as a whole.

    Raises ``InputError`` if the predictor keeps its state elsewhere than in arrays, or the file
    cannot be written.
    """
    known = require_savable(predictor, header.predictor).snapshot()
    content = io.BytesIO()
    shapes = {name: list(getattr(known, name).shape) for name in _ARRAYS}
    plain = {
        "format": FORMAT,
        "version": VERSION,
        "foresail": header.foresail,
        "predictor": header.predictor,
        "written_by": header.written_by,
        "names": {str(column): names for column, names in known.names.items()},
        "in_flight": known.in_flight,
        "slots": known.slots,
        "shapes": shapes,
    }
    packer = zstandard.ZstdCompressor(level=1)
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(_HEADER, json.dumps(plain))
        for name in _ARRAYS:
            numbers, blocks = _used_blocks(getattr(known, name))
            archive.writestr(f"{name}.blocks", packer.compress(numbers.tobytes()))
            archive.writestr(f"{name}.values", packer.compress(blocks.tobytes()))
    write_whole(path, content.getvalue())


def read_header(path: Path) -> StateHeader:
    """Read the header of a file.

    Raises ``InputError`` if it is none of ours, is damaged, or was written by another version.
    """
    return _read(path)[0]


def load_state(path: Path, predictor: object, short_form: str) -> None:
    """Let a predictor know what a file holds, and nothing else; the file is only read.

    The predictor, whose short form is given too, is an instance of the one that wrote it with
    ``save_state``, with the same parameters.

    Raises ``InputError`` if the file is none of ours, is damaged, was written by another version,
    or by another predictor. The predictor then knows what it knew before.
    """
    stepped = require_savable(predictor, short_form)
    header, known = _read(path)
    if header.predictor != short_form:
        raise InputError(
            "learned by another predictor, or with other parameters",
            source=path,
            value=header.predictor,
            expected=short_form,
        )
    try:
        stepped.restore(known)
    except ValueError as error:
        raise InputError(f"damaged: {error}", source=path, expected=_EXPECTED) from error


def merged(parts: Sequence[Predictor], fresh: Predictor) -> Predictor:
    """Merge what several predictors learned apart into one that has learned nothing yet.

    All have the same parameters; ``fresh``, another such, is returned. Jobs in flight are left out.

    Raises ``InputError`` if what this predictor learns cannot be put together.
    """
    absorb = getattr(fresh, "absorb", None)
    if absorb is None:
        raise InputError(
            "what this predictor learns has no meaning put together: its model depends on the "
            "order in which jobs ended",
            value=type(fresh).__name__,
            expected="a predictor that counts, such as history, jvu or similar",
        )
    for part in parts:
        absorb(part)
    return fresh


def require_savable(predictor: object, short_form: str) -> SteppedPredictor:
    """The predictor, if it keeps its state in arrays.

    Raises ``InputError`` if it does not.
    """
    if not isinstance(predictor, SteppedPredictor):
        raise InputError(
            "this predictor has nothing to save",
            field="predictor",
            value=short_form,
            expected="one with compiled steps",
        )
    return predictor


def _used_blocks(array: Floats) -> tuple[Integers, Floats]:
    """Numbers of the blocks of an array that are not zeros throughout, and these blocks."""
    flat = np.ascontiguousarray(array).reshape(-1)
    whole = flat.size // _BLOCK
    used = [np.flatnonzero(flat[: whole * _BLOCK].reshape(whole, _BLOCK).any(axis=1))]
    blocks = [flat[: whole * _BLOCK].reshape(whole, _BLOCK)[used[0]].ravel()]
    if flat.size > whole * _BLOCK:
        used.append(np.array([whole]))
        blocks.append(np.concatenate((flat[whole * _BLOCK :], np.zeros(-flat.size % _BLOCK))))
    return np.concatenate(used).astype("<i8"), np.concatenate(blocks).astype("<f8")


def _array(archive: zipfile.ZipFile, name: str, shape: Sequence[Any]) -> Floats:
    """The array whose used blocks are in the archive."""
    if any(not isinstance(length, int) or length < 0 for length in shape):
        raise ValueError(f"shape {shape}")
    unpacker = zstandard.ZstdDecompressor()
    numbers = np.frombuffer(unpacker.decompress(archive.read(f"{name}.blocks")), dtype="<i8")
    blocks = np.frombuffer(unpacker.decompress(archive.read(f"{name}.values")), dtype="<f8")
    size = int(np.prod(shape, dtype=np.int64))
    array = np.zeros(-(-size // _BLOCK) * _BLOCK)
    array.reshape(-1, _BLOCK)[numbers] = blocks.reshape(len(numbers), _BLOCK)
    return array[:size].reshape(shape)


def _read(path: Path) -> tuple[StateHeader, PredictorSnapshot]:
    require_end(path)
    try:
        with zipfile.ZipFile(path) as archive:
            plain: dict[str, Any] = json.loads(archive.read(_HEADER))
            _demand_ours(plain, path)
            arrays = {name: _array(archive, name, plain["shapes"][name]) for name in _ARRAYS}
        header = StateHeader(plain["predictor"], plain["written_by"], plain["foresail"])
        names = {int(column): list(known) for column, known in plain["names"].items()}
        if USER not in names:
            raise ValueError("no names of users")
        return header, PredictorSnapshot(
            names, tuple(plain["in_flight"]), tuple(plain["slots"]), **arrays
        )
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", source=path, expected=_EXPECTED
        ) from error
    except _DAMAGED as error:
        raise InputError(
            "damaged, or not a learned state", source=path, expected=_EXPECTED
        ) from error


def _demand_ours(plain: dict[str, Any], path: Path) -> None:
    if plain["format"] != FORMAT:
        raise ValueError("another format")
    if plain["version"] != VERSION:
        age = "a newer" if plain["version"] > VERSION else "an older"
        raise InputError(
            f"written by {age} version of Foresail",
            source=path,
            value=plain["version"],
            expected=f"version {VERSION} of the format, as `foresail predict train` writes it",
        )


def facts_of_state(path: Path, predictor: SteppedPredictor) -> dict[str, Any]:
    """Return what a file holds, by name, once the fresh predictor that it is of has loaded it."""
    from foresail.predictors.history import HistoryPredictor

    header = read_header(path)
    load_state(path, predictor, header.predictor)
    found: dict[str, Any] = {
        "predictor": header.predictor,
        "written_with": header.foresail,
        "file_bytes": path.stat().st_size,
        "jobs_in_flight": len(predictor.snapshot().in_flight),
    }
    if isinstance(predictor, HistoryPredictor):
        found |= asdict(predictor.memory())
        found["best_experts"] = predictor.best_experts()
    return found
