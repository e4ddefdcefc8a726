"""Records: named fields that kernels reach through one pointer.

Numba passes a ``NamedTuple`` of arrays field by field: seven words or more per array, which are
typed, lowered and copied in every kernel that hands it on. A class declared with `record` keeps
these words in memory, and kernels pass its address.

A field holds an array, a number, another record, a tuple of these, or a `Job`. Numbers may be
assigned to, in kernels and in Python, so that every count has a name of its own. All other fields
are fixed when the record is made, and the compiler is told so: it reads a field once for a whole
loop. Kernels may write to the entries of arrays. With ``NUMBA_DISABLE_JIT=1`` a record is an
ordinary object.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar, dataclass_transform

import numpy as np
from llvmlite import ir
from numba import extending as _extending
from numba.core import cgutils, errors, types
from numba.core.typing.templates import AttributeTemplate
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype

from fastrbhc._engine.jit import PLAIN_PYTHON, instruction

# Numba's own annotations are recent and partial.
extending: Any = _extending
_AttributeTemplate: Any = AttributeTemplate

Class = TypeVar("Class", bound=type)

_WORD, _BYTES = ir.IntType(64), ir.IntType(8).as_pointer()
_NUMBERS: dict[type, Any] = {int: types.int64, float: types.float64, bool: types.boolean}


class Record:
    """Base class of all records; see `record`."""

    _fields: tuple[str, ...] = ()
    _field_set: frozenset[str] = frozenset()
    _defaults: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, *values: Any, **named: Any) -> None:
        if values:
            if len(values) > len(self._fields) or named.keys() & set(self._fields[: len(values)]):
                raise TypeError(f"{type(self).__name__}: too many values")
            named.update(zip(self._fields, values, strict=False))
        if len(named) < len(self._fields):
            named = {**self._defaults, **named}
        if named.keys() != self._field_set:
            odd = ", ".join(sorted(named.keys() ^ self._field_set))
            raise TypeError(f"{type(self).__name__}: missing or unknown fields: {odd}")
        self._fill(named)

    def _fill(self, named: dict[str, Any]) -> None:
        self.__dict__.update(named)

    def __reduce__(self) -> Any:
        # A copy or an unpickled record has its own memory.
        return type(self), tuple(getattr(self, name) for name in self._fields)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._fields)})"


class _InMemory(Record):
    """A record whose fields kernels can read."""

    def _fill(self, named: dict[str, Any]) -> None:
        words: list[int] = []
        floats: list[tuple[int, float]] = []
        kinds = tuple([_describe(named[name], words, floats) for name in self._fields])
        record_type = _type_of(type(self), kinds)
        memory = np.array(words, np.int64)
        as_floats = memory.view(np.float64)
        for place, value in floats:
            as_floats[place] = value
        for name in record_type.cells:
            del named[name]
        named["_numba_type_"] = record_type
        named["_address"] = memory.__array_interface__["data"][0]
        named["_memory"], named["_floats"] = memory, as_floats
        self.__dict__.update(named)

    def __getattr__(self, name: str) -> Any:
        # Only numbers get here: they are stored in memory alone, other fields are attributes.
        try:
            kind, place = self.__dict__["_numba_type_"].cells[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no field {name}") from None
        return kind((self._floats if kind is float else self._memory)[place])

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._numba_type_.cells:
            raise AttributeError(f"{name} of {type(self).__name__} is fixed: only numbers change")
        kind, place = self._numba_type_.cells[name]
        (self._floats if kind is float else self._memory)[place] = kind(value)


@dataclass_transform(eq_default=False)
def record(cls: Class) -> Class:
    """Declare a class as a record, with its annotations as fields."""
    fields = tuple(vars(cls).get("__annotations__", {}))
    members = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    defaults = {name: members.pop(name) for name in fields if name in members}
    members.update(_fields=fields, _field_set=frozenset(fields), _defaults=defaults)
    members["__qualname__"] = cls.__qualname__
    made: Any = type(cls.__name__, (Record if PLAIN_PYTHON else _InMemory,), members)
    return made


def replaced(record: Any, **changes: Any) -> Any:
    """A record like the given one, with some fields changed."""
    return type(record)(**{**{name: getattr(record, name) for name in record._fields}, **changes})


# From values to words and kinds. A kind is a cheap key, from which a type is made once.


def _describe(value: Any, words: list[int], floats: list[tuple[int, float]]) -> Any:
    """Append the words of a value, and return its kind."""
    cls = type(value)
    if cls is np.ndarray:
        words.append(value.__array_interface__["data"][0])
        words += value.shape
        words += value.strides
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return value.dtype.char, value.ndim, layout
    if cls is float:
        floats.append((len(words), value))
        words.append(0)
        return float
    if cls is int or cls is bool:
        words.append(int(value))
        return cls
    if isinstance(value, Record):
        words.append(value._address)  # type: ignore[attr-defined]
        return value._numba_type_  # type: ignore[attr-defined]
    if isinstance(value, tuple):
        return cls, tuple([_describe(entry, words, floats) for entry in value])
    if isinstance(value, Job):
        words += (value.address, value.task._address)
        return Job
    if isinstance(value, np.ndarray):  # as joblib maps them into memory
        return _describe(value.view(np.ndarray), words, floats)
    if isinstance(value, np.generic):
        return _describe(value.item(), words, floats)
    raise TypeError(f"a record cannot hold {value!r}")


class RecordType(types.Type):
    """The type of a record in kernels: its class, and the types of its fields."""

    def __init__(self, cls: type, kinds: tuple[Any, ...]) -> None:
        self.instance_class = cls
        self.kinds = kinds
        self.fields: dict[str, tuple[Any, int]] = {}
        self.cells: dict[str, tuple[type, int]] = {}
        place = 0
        for name, kind in zip(cls._fields, kinds, strict=True):  # type: ignore[attr-defined]
            numba_type = _numba_type(kind)
            self.fields[name] = numba_type, place
            if kind in _NUMBERS:
                self.cells[name] = kind, place
            place += _n_words(numba_type)
        self.types = tuple([numba_type for numba_type, _ in self.fields.values()])
        # Part of the names of functions, so it has to be short and the same in every process.
        listed = ";".join(map(str, self.types))
        digest = hashlib.sha256(f"{cls.__module__}.{cls.__qualname__}({listed})".encode())
        super().__init__(name=f"{cls.__name__}_{digest.hexdigest()[:12]}")

    def __reduce__(self) -> Any:
        return _type_of, (self.instance_class, self.kinds)


class JobType(types.Type):
    """The type of a job in kernels."""

    def __init__(self) -> None:
        super().__init__(name="Job")


JOB_TYPE = JobType()
_TYPES: dict[Any, RecordType] = {}


def _type_of(cls: type, kinds: tuple[Any, ...]) -> RecordType:
    found = _TYPES.get((cls, kinds))
    if found is None:
        found = _TYPES[cls, kinds] = RecordType(cls, kinds)
    return found


def _numba_type(kind: Any) -> Any:
    if kind in _NUMBERS:
        return _NUMBERS[kind]
    if kind is Job:
        return JOB_TYPE
    if isinstance(kind, RecordType):
        return kind
    if len(kind) == 3:
        char, ndim, layout = kind
        return types.Array(from_dtype(np.dtype(char)), ndim, layout)
    cls, kinds = kind
    entries = tuple(_numba_type(entry) for entry in kinds)
    return types.Tuple(entries) if cls is tuple else types.NamedTuple(entries, cls)


def _is_tuple(numba_type: Any) -> bool:
    return isinstance(numba_type, types.BaseTuple)


def _n_words(numba_type: Any) -> int:
    if isinstance(numba_type, types.Array):
        return 1 + 2 * int(numba_type.ndim)
    if _is_tuple(numba_type):
        return sum(_n_words(entry) for entry in numba_type)
    return 2 if numba_type is JOB_TYPE else 1


# The same words as kernels see them.


@extending.register_model(RecordType)
class _RecordModel(extending.models.OpaqueModel):
    """A pointer."""


@extending.register_model(JobType)
class _JobModel(extending.models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        members = [("function", types.voidptr), ("task", types.voidptr)]
        super().__init__(manager, kind, members)


@extending.unbox(RecordType)
def _unbox_record(kind: Any, value: Any, c: Any) -> Any:
    address = c.pyapi.object_getattr_string(value, "_address")
    word = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return extending.NativeValue(c.builder.inttoptr(word, _BYTES))


@extending.infer_getattr
class _RecordAttributes(_AttributeTemplate):
    key = RecordType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        return kind.fields[name][0] if name in kind.fields else None


@extending.lower_getattr_generic(RecordType)
def _read_field(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    numba_type, place = kind.fields[name]
    return _Reader(context, builder, value).read(numba_type, place, fixed=name not in kind.cells)


@extending.lower_setattr_generic(RecordType)
def _write_field(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
    kind, value_type = signature.args
    if name not in kind.cells:
        raise errors.UnsupportedError(
            f"{name} of {kind.instance_class.__name__} is fixed: only numbers change"
        )
    numba_type, place = kind.fields[name]
    value = context.cast(builder, arguments[1], value_type, numba_type)
    if numba_type == types.boolean:
        value = builder.zext(value, _WORD)
    pointer = _Reader(context, builder, arguments[0]).pointer(place, value.type)
    builder.store(value, pointer)


class _Reader:
    """Reads the words of a record."""

    def __init__(self, context: Any, builder: Any, address: Any) -> None:
        self.context, self.builder, self.address = context, builder, address

    def pointer(self, place: int, value_type: Any) -> Any:
        offset = ir.Constant(_WORD, 8 * place)
        return self.builder.bitcast(
            self.builder.gep(self.address, [offset]), value_type.as_pointer()
        )

    def word(self, place: int, value_type: Any, fixed: bool) -> Any:
        loaded = self.builder.load(self.pointer(place, value_type), align=8)
        if fixed:
            loaded.set_metadata("invariant.load", self.builder.module.add_metadata([]))
        return loaded

    def read(self, numba_type: Any, place: int, fixed: bool) -> Any:
        if isinstance(numba_type, types.Array):
            return self._array(numba_type, place)
        if _is_tuple(numba_type):
            entries = []
            for entry in numba_type:
                entries.append(self.read(entry, place, fixed))
                place += _n_words(entry)
            return self.context.make_tuple(self.builder, numba_type, entries)
        if numba_type is JOB_TYPE:
            job = self.context.make_helper(self.builder, JOB_TYPE)
            job.function = self.word(place, _BYTES, fixed)
            job.task = self.word(place + 1, _BYTES, fixed)
            return job._getvalue()
        if numba_type == types.boolean:
            return self.builder.trunc(self.word(place, _WORD, fixed), ir.IntType(1))
        return self.word(place, self.context.get_value_type(numba_type), fixed)

    def _array(self, kind: Any, place: int) -> Any:
        array = self.context.make_array(kind)(self.context, self.builder)
        data = self.word(place, array.data.type, fixed=True)
        shape = [self.word(place + 1 + k, _WORD, fixed=True) for k in range(kind.ndim)]
        strides = [
            self.word(place + 1 + kind.ndim + k, _WORD, fixed=True) for k in range(kind.ndim)
        ]
        size = self.context.get_abi_sizeof(self.context.get_data_type(kind.dtype))
        # Without an owner: the record keeps the array alive, and no references are counted.
        populate_array(array, data, shape, strides, ir.Constant(_WORD, size), None)
        return array._getvalue()


class Job:
    """A kernel ``(task, first, last, scratch)`` together with the record that it works on.

    Kernels call it through a pointer, see `call`. So the code that distributes the work and decides
    what comes next is compiled once for all families, backends and numbers of columns.
    """

    def __init__(self, kernel: Any, task: Any, scratch: Any) -> None:
        self.kernel, self.task = kernel, task
        self.address = 0
        if not PLAIN_PYTHON:
            kinds = task._numba_type_, types.int64, types.int64, scratch._numba_type_
            self.address = kernel.address(*kinds)

    def __call__(self, first: int, last: int, scratch: Any) -> None:
        self.kernel(self.task, first, last, scratch)


def call(job: Any, first: int, last: int, scratch: Any) -> None:
    """Run a job on the elements first…last−1 of its task."""
    job(first, last, scratch)


def call_succeeds(job: Any, first: int, last: int, scratch: Any) -> bool:
    """The same, and whether it raised no exception, for those who cannot leave at once."""
    job(first, last, scratch)
    return True


def _call_pointer(context: Any, builder: Any, arguments: Any) -> Any:
    """The status of a call."""
    pair = context.make_helper(builder, JOB_TYPE, arguments[0])
    kinds = [types.voidptr, types.int64, types.int64, types.voidptr]
    function_type = context.call_conv.get_function_type(types.none, kinds)
    function = builder.bitcast(pair.function, function_type.as_pointer())
    values = [pair.task, *arguments[1:]]
    return context.call_conv.call_function(builder, function, types.none, kinds, values)[0]


@instruction(call)
def _call(context: Any, job: Any, first: Any, last: Any, scratch: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        status = _call_pointer(context, builder, arguments)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.void(job, types.int64, types.int64, scratch), code


@instruction(call_succeeds)
def _call_succeeds(context: Any, job: Any, first: Any, last: Any, scratch: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.not_(_call_pointer(context, builder, arguments).is_error)

    return types.boolean(job, types.int64, types.int64, scratch), code
