"""Logs that TensorBoard opens: `tensorboard --logdir runs` shows scalars, images, texts, and the options under HParams.

Event files are written here through the run folder, as all of a run is, with tensorboard's own messages and record
format; torch.utils.tensorboard would write where a link leads, and from a thread of its own.
"""

# pyright: reportAttributeAccessIssue=false
# (the classes of protobuf messages are made when they are imported)

import io
import struct
import time
from collections.abc import Iterator, Mapping
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

from quoin.train.folder import RunFolder
from quoin.train.log_folder import LogFolder

__all__ = ["TensorBoardLogger"]

NAME = "events.out.tfevents"
FRAME = struct.Struct("<QI")  # before a record: its length, and a checksum of that; a checksum of 4 bytes follows it


class TensorBoardLogger:
    """Event files in RUN/log: one for the beginning of a run, and one for each time it was resumed."""

    def __init__(self, folder: RunFolder) -> None:
        self._log = LogFolder(folder)
        self._file, self._last = "", 0

    def begin(self, step: int) -> None:
        """Forget what was written after `step`, and start a file of its own: a TensorBoard that has the others open
        goes on to it."""
        before = [name for name in self._log.names() if name.startswith(NAME)]
        for name in before:
            kept = [record for record in _records(self._log.read(name)) if _stays(Event.FromString(record), step)]
            self._log.replace(name, b"".join(map(_framed, kept)) if len(kept) > 1 else b"")  # the first is the version
        numbers = [int(name.rpartition(".")[2]) for name in before if name.rpartition(".")[2].isdecimal()]
        self._file = f"{NAME}.{max(numbers, default=0) + 1:06d}"
        self._write(Event(file_version="brain.Event:2"))
        self._last = step

    def log_options(self, options: Mapping[str, Any]) -> None:
        started = plugin_data_pb2.SessionStartInfo(start_time_secs=time.time())
        for name, value in options.items():
            if isinstance(value, bool):
                started.hparams[name].bool_value = value
            elif isinstance(value, (int, float)):
                started.hparams[name].number_value = value
            elif value is not None:
                started.hparams[name].string_value = " ".join(map(str, value)) if isinstance(value, tuple) else value
        about = plugin_data_pb2.HParamsPluginData(session_start_info=started)
        self._write_session(metadata.SESSION_START_INFO_TAG, about)

    def log_scalars(self, step: int, values: Mapping[str, float]) -> None:
        again = step == self._last  # its epoch is there, from the batch or the evaluation
        self._last = step
        found = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in values.items()
            if not (name == "epoch" and again)
        ]
        self._write(Event(step=step, summary=Summary(value=found)))

    def log_image(self, step: int, name: str, png: bytes) -> None:
        width, height = struct.unpack(">II", png[16:24])
        image = Summary.Image(width=width, height=height, colorspace=4, encoded_image_string=png)
        self._write(Event(step=step, summary=Summary(value=[Summary.Value(tag=name, image=image)])))

    def log_text(self, step: int, name: str, text: str) -> None:
        plugin = SummaryMetadata.PluginData(plugin_name="text")
        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
        tensor = TensorProto(dtype="DT_STRING", string_val=[text.encode(errors="replace")], tensor_shape=shape)
        value = Summary.Value(tag=f"{name}/text_summary", metadata=SummaryMetadata(plugin_data=plugin), tensor=tensor)
        self._write(Event(step=step, summary=Summary(value=[value])))

    def close(self, *, finished: bool) -> None:
        if finished:
            success = api_pb2.Status.Value("STATUS_SUCCESS")
            ended = plugin_data_pb2.SessionEndInfo(status=success, end_time_secs=time.time())
            about = plugin_data_pb2.HParamsPluginData(session_end_info=ended)
            self._write_session(metadata.SESSION_END_INFO_TAG, about)

    def _write_session(self, tag: str, about: plugin_data_pb2.HParamsPluginData) -> None:
        data = metadata.create_summary_metadata(about)
        value = Summary.Value(tag=tag, metadata=data, tensor=metadata.NULL_TENSOR)
        self._write(Event(summary=Summary(value=[value])))

    def _write(self, event: Event) -> None:
        event.wall_time = time.time()
        self._log.append(self._file, _framed(event.SerializeToString()))


def _framed(record: bytes) -> bytes:
    content = io.BytesIO()
    RecordWriter(content).write(record)
    return content.getvalue()


def _records(content: bytes) -> Iterator[bytes]:
    """Every whole record of an event file; a kill can tear the last."""
    at = 0
    while at + FRAME.size <= len(content):
        length, checksum = FRAME.unpack_from(content, at)
        end = at + FRAME.size + length
        if checksum != masked_crc32c(content[at : at + 8]) or end + 4 > len(content):
            return
        yield content[at + FRAME.size : end]
        at = end + 4


def _stays(event: Event, step: int) -> bool:
    """Whether a run that goes on from `step` will not write it again: the options and the note come at every beginning,
    the final metrics, images and texts at the end."""
    if event.HasField("file_version"):
        return True
    tags = [value for value in event.summary.value if value.HasField("simple_value")]
    return bool(tags) and event.step <= step and not any(value.tag.startswith("final/") for value in tags)
