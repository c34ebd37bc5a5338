"""States behind addresses, so that compiled functions do not depend on the types of policies and worlds.

A State is a NamedTuple of arrays, numbers and further NamedTuples. Its *words*, a vector of int64, describe it: the
address, shape and strides of each array, and the bits of each number. An *entry* is the compiled code of one type of
State. It gets the address of the words, rebuilds the NamedTuple with `loader` and calls the functions that were written
for it. All signatures have numbers only, so simulations, agents and cohorts are compiled once and call entries by
address.

`Memory` holds the arrays of one State, or of the States of many units, in a few blocks that never move.
"""

import ctypes
import math
import struct
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple, cast

import numba
import numpy as np
from numba import extending as _extending
from numba import types
from numba.core import cgutils as _cgutils
from numba.core.typing import templates as _templates
from numba.extending import intrinsic
from numba.np import arrayobj as _arrayobj
from numpy.typing import NDArray

from larl._core.compile import config, is_larl
from larl._core.validation import short

arrayobj: Any = _arrayobj
cgutils: Any = _cgutils
extending: Any = _extending
templates: Any = _templates
ALIGNMENT = 8  # words of 8 bytes: a cache line, and more than any vector register needs
GUARD = 0xA5A5_5A5A_C3C3_3C3C  # in the words between two arrays, which nothing may write
Words = NDArray[np.uint64]

# Fields of a NamedTuple that compiled code only reads. All copies and units refer to the same arrays.
CONSTANT: dict[type, tuple[str, ...]] = {}


def share_fields(state: type, names: tuple[str, ...]) -> None:
    """Declare arrays and nested NamedTuples of a class that nothing changes: copies of a State and units share them."""
    CONSTANT[state] = names


# Fields of a NamedTuple in which nan shows, whatever its cause: the only ones that are searched for it.
CHECKED: dict[type, tuple[str, ...]] = {}


class Leaf(NamedTuple):
    """An array of a State."""

    path: str
    array: NDArray[Any]
    word: int  # index of its address in the words
    is_constant: bool
    is_shared: bool  # by the units of a cohort
    is_checked: bool  # whether it is searched for nan


def leaves(state: Any, shared: Callable[[type], Collection[str]] = lambda _: ()) -> Iterator[Leaf]:
    """Yield the arrays of a State in the order of its fields; `shared` names the fields that units share."""
    word = 0

    def walk(part: Any, prefix: str, is_constant: bool, is_shared: bool, is_checked: bool) -> Iterator[Leaf]:
        nonlocal word
        constants, common = CONSTANT.get(type(part), ()), shared(type(part))
        checked = CHECKED.get(type(part), part._fields)
        for name, field in zip(part._fields, part, strict=True):
            flags = is_constant or name in constants, is_shared or name in common, is_checked and name in checked
            if isinstance(field, np.ndarray):
                yield Leaf(prefix + name, field, word, *flags)
                word += 1 + 2 * field.ndim
            elif isinstance(field, tuple):
                yield from walk(field, f"{prefix}{name}.", *flags)
            else:
                word += 1

    return walk(state, "", False, False, True)


def nested(state: Any) -> Iterator[Any]:
    """Yield a State and the NamedTuples in it."""
    yield state
    for field in state:
        if isinstance(field, tuple):
            yield from nested(field)


def replace_arrays(state: Any, arrays: Iterator[Any]) -> Any:
    """Return a State with other arrays, in the order of `leaves`."""

    def replaced(field: Any) -> Any:
        if isinstance(field, np.ndarray):
            return next(arrays)
        return replace_arrays(field, arrays) if isinstance(field, tuple) else field

    return type(state)(*map(replaced, state))


def copy_state(state: Any) -> Any:
    """Return a State with copies of all arrays that are not constant."""
    return replace_arrays(state, (each.array if each.is_constant else each.array.copy() for each in leaves(state)))


def has_nan(state: Any) -> bool:
    """Return whether an array of a State contains nan (see CHECKED)."""
    return any(each.array.dtype.kind == "f" and np.isnan(each.array).any() for each in leaves(state) if each.is_checked)


def check_fields(state: Any, name: str) -> None:
    """Raise TypeError unless a State consists of what compiled code can use; `name` is that of the State."""
    if not (isinstance(state, tuple) and hasattr(state, "_fields")):
        raise TypeError(f"{name} is {short(state)}, not a NamedTuple of arrays, numbers and NamedTuples")
    for field, value in zip(state._fields, state, strict=True):
        if isinstance(value, tuple):
            check_fields(value, f"{name}.{field}")
        elif isinstance(value, np.ndarray):
            if value.dtype.kind not in "fiub" or value.ndim == 0 or (value.dtype.kind == "f" and value.itemsize != 8):
                kind = f"an array of {value.dtype} with {value.ndim} dimensions"
                accepted = "float64, whole numbers or booleans with at least one dimension"
                raise TypeError(f"{name}.{field} is {kind}; accepted: {accepted}")
        elif not isinstance(value, int | float | np.bool_ | np.integer | np.floating) or (
            isinstance(value, int | np.integer) and not -(2**63) <= value < 2**63
        ):
            raise TypeError(f"{name}.{field} is {short(value)}, not an array, a NamedTuple or a number of 64 bits")


def plain(state: Any) -> Any:
    """Return a State whose arrays are contiguous and aligned; it is the same object if they are."""
    arrays = [each.array for each in leaves(state)]
    if all(array.flags.c_contiguous and array.flags.aligned for array in arrays):
        return state
    return replace_arrays(state, iter([np.require(array, requirements=["C", "A"]) for array in arrays]))


def kind_of(state: Any) -> Any:
    """Return what decides the compiled code of a State: a tuple of classes, types and numbers of dimensions."""

    def kind(field: Any) -> Any:
        if isinstance(field, np.ndarray):
            return field.dtype.str, field.ndim
        if isinstance(field, tuple):
            return kind_of(field)
        return bool if isinstance(field, bool | np.bool_) else int if isinstance(field, int | np.integer) else float

    return type(state), *map(kind, state)


def numba_type(kind: Any) -> Any:
    """Return the type that compiled code has for a State, by its `kind_of`."""

    def field_type(field: Any) -> Any:
        if isinstance(field, tuple):
            if isinstance(field[0], str):
                return types.Array(cast(Any, numba).from_dtype(np.dtype(field[0])), field[1], "C")
            return numba_type(field)
        return {bool: types.boolean, int: types.int64, float: types.float64}[field]

    return cast(Any, types.NamedTuple)(list(map(field_type, kind[1:])), kind[0])


def words_of(state: Any) -> NDArray[np.int64]:
    """Return the words of a State with plain arrays. They are valid as long as its arrays exist."""
    words: list[int] = []
    for field in state:
        if isinstance(field, np.ndarray):
            words += (field.ctypes.data, *field.shape, *field.strides)
        elif isinstance(field, tuple):
            words += words_of(field).tolist()
        elif isinstance(field, bool | int | np.integer | np.bool_):
            words.append(int(field))
        else:
            words.append(struct.unpack("<q", struct.pack("<d", float(field)))[0])
    return np.array(words, dtype=np.int64)


class Memory:
    """The States of one or more units in blocks that do not move, and their words.

    `own` has one row for each unit. `shared` has the arrays that units share, and constant arrays stay where they are.
    Every array begins at a multiple of 64 bytes. Between two arrays are words with the value GUARD.
    """

    def __init__(self, state: Any, units: int = 1, shared: Callable[[type], Collection[str]] = lambda _: ()) -> None:
        """Copy a State for each unit; `shared` returns the fields of a class that all units share."""
        check_fields(state, type(state).__name__)
        state, self.units = plain(state), units
        self.leaves = [each for each in leaves(state, shared) if not each.is_constant]
        sizes = {False: 0, True: 0}  # words of the block of a unit and of the shared block
        places = []
        for each in self.leaves:
            places.append(sizes[each.is_shared])
            used = -(-each.array.nbytes // 8) + 1  # one word of GUARD at least
            sizes[each.is_shared] += -(-used // ALIGNMENT) * ALIGNMENT
        self._placed, self._state = list(zip(self.leaves, places, strict=True)), state
        self._states: dict[int, Any] = {}  # views that were asked for
        self.shared, self.own = _aligned(1, sizes[True])[0], _aligned(units, sizes[False])
        for each, place in self._placed:
            for row in [self.shared] if each.is_shared else self.own[:1]:
                array_in(row, place, each.array)[...] = each.array
        self.own[1:] = self.own[:1]
        first = words_of(self.state(0)) if units else words_of(state)
        stride = np.zeros(first.size, np.int64)
        stride[[each.word for each in self.leaves if not each.is_shared]] = 8 * sizes[False]
        self.words = first + np.arange(units)[:, None] * stride
        self.segments = segments(self.leaves)
        self.checked = segments(each for each in self.leaves if each.is_checked and each.array.dtype == np.float64)

    def copy(self) -> "Memory":
        """Return a memory of its own with the same content."""
        new = Memory.__new__(Memory)
        new.__dict__.update(self.__dict__)
        new.shared, new.own = _aligned(1, self.shared.size)[0], _aligned(self.units, self.own.shape[1])
        new.shared[...], new.own[...] = self.shared, self.own
        new.words = self.words.copy()
        for is_shared, block, old in ((False, new.own, self.own), (True, new.shared, self.shared)):
            words = [each.word for each in self.leaves if each.is_shared == is_shared]
            new.words[:, words] += block.ctypes.data - old.ctypes.data
        new._states = {}
        return new

    def __reduce__(self) -> Any:
        raise TypeError("a Memory cannot be pickled or copied by the module copy: others have its addresses")

    def state(self, unit: int = 0) -> Any:
        """Return the State of a unit, whose arrays are parts of the blocks."""
        if unit not in self._states:
            self._states[unit] = self.state_in(self.own[unit], self.shared)
        return self._states[unit]

    def state_in(self, own: Words, shared: Words) -> Any:
        """Return the State whose arrays are in other blocks of the same layout."""
        arrays = (array_in(shared if leaf.is_shared else own, place, leaf.array) for leaf, place in self._placed)
        return self._view(arrays)

    def stacked(self) -> Any:
        """Return a State whose arrays have the unit as an additional first axis; shared arrays have not."""
        return self._view(
            array_in(self.shared, place, leaf.array) if leaf.is_shared else self._of_all_units(place, leaf.array)
            for leaf, place in self._placed
        )

    def _of_all_units(self, place: int, like: NDArray[Any]) -> NDArray[Any]:
        """Return the array with the unit as its first axis that begins at a word of the units' blocks."""
        if self.units == 0:
            return np.empty((0, *like.shape), like.dtype)
        strides = (self.own.strides[0], *like.strides)
        return np.ndarray((self.units, *like.shape), like.dtype, self.own.reshape(-1), 8 * place, strides)

    def _view(self, arrays: Iterator[NDArray[Any]]) -> Any:
        """Return the State with other arrays in the places of those that are not constant."""
        return replace_arrays(
            self._state, (each.array if each.is_constant else next(arrays) for each in leaves(self._state))
        )

    def address(self, unit: int = 0) -> int:
        """Return the address of the words of a unit."""
        return int(self.words.ctypes.data) + self.words.strides[0] * unit

    def guards_are_intact(self) -> bool:
        """Return whether nothing was written between the arrays."""
        for block, is_shared in ((self.own, False), (self.shared[None], True)):
            is_free = np.ones(block.shape[1], np.bool_)
            for each, place in self._placed:
                if each.is_shared == is_shared:
                    is_free[place : place + -(-each.array.nbytes // 8)] = False
            if (block[:, is_free] != np.uint64(GUARD)).any():
                return False
        return True


def segments(arrays: Iterable[Leaf]) -> NDArray[np.int64]:
    """Return where the words have the address of each array, and its length in words: a matrix of two columns."""
    return np.array([(each.word, -(-each.array.nbytes // 8)) for each in arrays], np.int64).reshape(-1, 2)


def array_in(block: Words, place: int, like: NDArray[Any]) -> NDArray[Any]:
    """Return the array with the type and shape of another one that begins at a word of a block."""
    return np.ndarray(like.shape, like.dtype, block, 8 * place)


def _aligned(rows: int, columns: int) -> Any:
    """Return a matrix of words with the value GUARD whose rows begin at multiples of 64 bytes."""
    block = np.full(rows * columns + ALIGNMENT, GUARD, np.uint64)
    start = -(block.ctypes.data // 8) % ALIGNMENT
    return block[start : start + rows * columns].reshape(rows, columns)


class StateAt(types.Type):
    """The type of a State in compiled code: the address of its words. A field is read where it is used.

    Passing it to a function passes one number. A NamedTuple of a hundred arrays would be seven hundred numbers, which
    take long to compile.
    """

    def __init__(self, values: Any) -> None:
        self.values, self.instance_class = values, values.instance_class
        cast(Any, super()).__init__(name=f"state_at({values}, {id(values.instance_class)})")

    def place(self, name: str) -> tuple[Any, int]:
        """Return the type of a field, and the index of its first word."""
        word = 0
        for each, field in zip(self.values.fields, self.values.types, strict=True):
            if each == name:
                return field, word
            word += _word_count(field)
        raise KeyError(name)


def _word_count(field: Any) -> int:
    """Return the number of words of a field."""
    if isinstance(field, types.BaseNamedTuple):
        return sum(map(_word_count, cast(Any, field).types))
    return 1 + 2 * field.ndim if isinstance(field, types.Array) else 1


@extending.register_model(StateAt)
class _StateAtModel(extending.models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, cgutils.intp_t)


@extending.infer_getattr
class _StateAtFields(templates.AttributeTemplate):  # type: ignore[misc]
    key = StateAt

    def generic_resolve(self, kind: Any, name: str) -> Any:
        if name not in kind.values.fields:
            return None
        field, _ = kind.place(name)
        return StateAt(field) if isinstance(field, types.BaseNamedTuple) else field


def _read_field(context: Any, builder: Any, kind: Any, address: Any, name: str) -> Any:
    number = cgutils.intp_t
    field, place = kind.place(name)
    if isinstance(field, types.BaseNamedTuple):
        return builder.add(address, number(8 * place))
    base = builder.inttoptr(address, number.as_pointer())

    def word(offset: int) -> Any:
        value = builder.load(builder.gep(base, [number(place + offset)]))
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    if isinstance(field, types.Array):
        return _array(context, builder, field, word(0), [word(1 + i) for i in range(2 * field.ndim)])
    if isinstance(field, types.Float):
        return builder.bitcast(word(0), context.get_value_type(field))
    return builder.trunc(word(0), context.get_value_type(field)) if field == types.boolean else word(0)


extending.lower_getattr_generic(StateAt)(_read_field)


def loader(kind: Any) -> Callable[[int], Any]:
    """Return a function for compiled code that returns the State of this `kind_of` whose words are at an address.

    It does not count references: whoever calls compiled code holds the arrays.
    """
    if config.DISABLE_JIT:
        return lambda address: _read_state(kind, iter(_words_at(address)))
    values = numba_type(kind)
    state_type = StateAt(values)

    def whole(context: Any, builder: Any, part: Any, address: Any) -> Any:
        fields = (_read_field(context, builder, part, address, name) for name in part.values.fields)
        types_of = [part.place(name)[0] for name in part.values.fields]
        given = [
            whole(context, builder, StateAt(kind), field) if isinstance(kind, types.BaseNamedTuple) else field
            for kind, field in zip(types_of, fields, strict=True)
        ]
        return context.make_tuple(builder, part.values, given)

    def load(_: Any, address: Any) -> Any:  # noqa: ARG001
        if is_larl(kind[0]):
            return state_type(types.int64), lambda _context, _builder, _signature, arguments: arguments[0]
        # Functions from outside larl can do with a State all that numba does with a NamedTuple.
        return values(types.int64), lambda context, builder, _, arguments: whole(
            context, builder, state_type, arguments[0]
        )

    return cast(Callable[[int], Any], intrinsic(load))


def _array(context: Any, builder: Any, kind: Any, address: Any, sizes: list[Any]) -> Any:
    """Build an array over memory that has another owner; `sizes` are its shape and its strides."""
    array = arrayobj.make_array(kind)(context, builder)
    item = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    arrayobj.populate_array(
        array,
        data=builder.inttoptr(address, context.get_data_type(kind.dtype).as_pointer()),
        shape=sizes[: kind.ndim],
        strides=sizes[kind.ndim :],
        itemsize=item,
        meminfo=None,
    )
    return array._getvalue()


def _vector_at(kind: Any) -> Callable[[int, int], Any]:
    """Return a function that returns the vector of a type and length at an address."""
    dtype = np.dtype(str(kind) if kind != types.boolean else "?")
    if config.DISABLE_JIT:
        return lambda address, size: _array_at(int(address), (int(size),), dtype)
    vector = types.Array(kind, 1, "C")

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        stride = context.get_constant(types.intp, dtype.itemsize)
        return _array(context, builder, vector, arguments[0], [arguments[1], stride])

    def at(_: Any, address: Any, size: Any) -> Any:  # noqa: ARG001
        return vector(types.int64, types.int64), generate

    return cast(Callable[[int, int], Any], intrinsic(at))


floats_at = _vector_at(types.float64)
words_at = _vector_at(types.int64)
bits_at = _vector_at(types.uint64)
mask_at = _vector_at(types.boolean)


def _array_at(address: int, shape: Any, dtype: Any, strides: Any = None) -> Any:
    """Return the array at an address, for Python."""
    memory = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(address)
    return np.ndarray(shape, dtype, memory, strides=strides)


def _words_at(address: int) -> Iterator[int]:
    """Yield the words at an address, for Python."""
    while True:
        yield ctypes.c_int64.from_address(int(address)).value
        address += 8


def _read_state(kind: Any, words: Iterator[int]) -> Any:
    """Return the State with these words, for Python."""

    def field(each: Any) -> Any:
        if isinstance(each, tuple) and isinstance(each[0], str):
            address, dtype = next(words), np.dtype(each[0])
            shape, strides = ([next(words) for _ in range(each[1])] for _ in range(2))
            return _array_at(address, shape, dtype, strides)
        if isinstance(each, tuple):
            return _read_state(each, words)
        value = next(words)
        return struct.unpack("<d", struct.pack("<q", value))[0] if each is float else each(value)

    return kind[0](*map(field, kind[1:]))


ENTRIES: list[Callable[..., Any]] = []  # uncompiled entries; their addresses are their numbers, from 1


@cache
def caller(result: Any, *arguments: Any) -> Any:
    """Return a function that calls the compiled function at an address, which may raise exceptions."""
    if config.DISABLE_JIT:
        return lambda address, values: ENTRIES[address - 1](*values)

    def generate(context: Any, builder: Any, _: Any, given: Any) -> Any:
        function_type = context.call_conv.get_function_type(result, arguments)
        function = builder.inttoptr(given[0], function_type.as_pointer())
        values = cgutils.unpack_tuple(builder, given[1])
        status, value = context.call_conv.call_function(builder, function, result, arguments, values)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return value

    def call(_: Any, address: Any, values: Any) -> Any:  # noqa: ARG001
        return result(types.int64, cast(Any, types).Tuple(arguments)), generate

    return intrinsic(call)


@intrinsic
def _copy_words(_: Any, target: Any, source: Any, count: Any) -> Any:  # noqa: ARG001
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = cgutils.voidptr_t
        target, source = (builder.inttoptr(each, pointer) for each in arguments[:2])
        cgutils.raw_memcpy(builder, target, source, arguments[2], 8)
        return cgutils.intp_t(0)

    return types.int64(types.int64, types.int64, types.int64), generate


def _copy_words_in_python(target: int, source: int, count: int) -> int:
    ctypes.memmove(int(target), int(source), 8 * int(count))
    return 0


copy_words: Any = _copy_words_in_python if config.DISABLE_JIT else _copy_words


def assign_fields(target: Any, source: Any) -> None:
    """Write the arrays of a State, except constant ones, into another State of the same type and shapes."""
    for ours, theirs in zip(leaves(target), leaves(source), strict=True):
        if not ours.is_constant:
            ours.array[...] = theirs.array


def _generate_assignment(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    def field(kind: Any, state: Any, name: str) -> tuple[Any, Any]:
        if isinstance(kind, StateAt):
            values, _ = kind.place(name)
            nested = isinstance(values, types.BaseNamedTuple)
            return StateAt(values) if nested else values, _read_field(context, builder, kind, state, name)
        i = kind.fields.index(name)
        return kind.types[i], builder.extract_value(state, i)

    def assign(kind: Any, target: Any, source_kind: Any, source: Any) -> None:
        constants = CONSTANT.get(kind.instance_class, ())
        for name in kind.instance_class._fields:
            if name in constants:
                continue
            (field_type, ours), (source_type, theirs) = field(kind, target, name), field(source_kind, source, name)
            if isinstance(field_type, types.BaseNamedTuple | StateAt):
                assign(field_type, ours, source_type, theirs)
            elif isinstance(field_type, types.Array):
                to, of = (arrayobj.make_array(field_type)(context, builder, each) for each in (ours, theirs))
                cgutils.raw_memcpy(builder, to.data, of.data, of.nitems, of.itemsize)

    assign(signature.args[0], arguments[0], signature.args[1], arguments[1])
    return context.get_dummy_value()


if not config.DISABLE_JIT:

    @intrinsic
    def assign_fields(_: Any, target: Any, source: Any) -> Any:
        return types.void(target, source), _generate_assignment
