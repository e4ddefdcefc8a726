"""The one place for compiler options, for kernels and for contracts.

A *kernel* is a jitted function; see `compiler` for what becomes of it, and `kernel_cache` for how
it is kept on disk. A *contract* is a function whose implementation belongs to the record it is
called with: ``divergence(family, ...)`` runs the method ``divergence`` of that family's class, in
plain Python and in jitted code alike. An *instruction* is a function that kernels replace by LLVM
instructions.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import (
    AbstractTemplate,
    infer,
    infer_global,
    make_intrinsic_template,
)

from fastrbhc._engine.compiler import FragmentCompiler, ProgramCompiler
from fastrbhc._engine.interrupts import compiling
from fastrbhc._engine.kernel_cache import cache_of

# Numba's own annotations are recent and partial.
config: Any = numba.config
_Dispatcher: Any = CPUDispatcher
_Template: Any = AbstractTemplate
Method = TypeVar("Method", bound=Callable[..., Any])
PLAIN_PYTHON = bool(config.DISABLE_JIT)

# Stated even where it is the default: Numba takes unstated options from the first caller that is
# compiled, and exact values would depend on which caller came first. Numba counts
# references to arrays: about 20 atomic instructions per call that is not inlined, a quarter of the
# run time with full covariances. Kernels borrow their arrays and keep none, so that is turned off.
_OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": False,
    "boundscheck": None,
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
_ALLOCATING: dict[str, Any] = {**_OPTIONS, "_nrt": True}
FUSED: dict[str, Any] = {**_OPTIONS, "fastmath": {"contract"}}
_MAKING_PROGRAM = threading.Lock()


class _Program(_Dispatcher):
    """A kernel as Python calls it: machine code, made in full or not at all."""

    def compile(self, sig: Any) -> Any:
        with compiling():
            return super().compile(sig)


class Kernel(_Dispatcher):
    """A jitted function: a fragment when kernels call it, a program when Python calls it."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options, pipeline_class=FragmentCompiler)
        self._entries: dict[tuple[Any, ...], Any] = {}
        self._program: Any = None
        self._addresses: dict[tuple[Any, ...], int] = {}

    @property
    def program(self) -> Any:
        """The function as Python calls it, kept on disk."""
        if self._program is None:
            with _MAKING_PROGRAM:  # one for all threads: it owns the machine code
                if self._program is None:
                    self._program = self._new_program()
        return self._program

    def _new_program(self) -> Any:
        program = _Program(
            self.py_func, targetoptions=self.targetoptions, pipeline_class=ProgramCompiler
        )
        cache = cache_of(self.py_func)
        if cache is not None:
            program._cache = cache
        return program

    def __call__(self, *arguments: Any) -> Any:
        kinds = tuple([getattr(a, "_numba_type_", None) or type(a) for a in arguments])
        entry = self._entries.get(kinds)
        if entry is None:
            entry = self._entries[kinds] = self._entry(kinds)
        return entry(*arguments)

    def _entry(self, kinds: tuple[Any, ...]) -> Any:
        """The function to call for arguments of these kinds.

        The types of records and numbers are known at once; those of arrays are left to Numba.
        """
        known = [k if isinstance(k, types.Type) else _NUMBER_TYPES.get(k) for k in kinds]
        return self.program if None in known else self.program.compile(tuple(known))

    def fragment(self, arguments: tuple[Any, ...]) -> Any:
        """The fragment for arguments of these types."""
        # Numba would compile once more for each literal constant.
        kinds = tuple(types.unliteral(argument) for argument in arguments)
        self.compile(kinds)
        return self.overloads[kinds]

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Called by Numba when another kernel calls this one."""
        return super().get_call_template(tuple(types.unliteral(a) for a in args), kws)

    def address(self, *kinds: Any) -> int:
        """The address of the machine code for arguments of these types; see `records.Job`."""
        found = self._addresses.get(kinds)
        if found is None:
            self.program.compile(kinds)
            compiled = self.program.overloads[kinds]
            name = compiled.fndesc.llvm_func_name
            found = self._addresses[kinds] = compiled.library.get_pointer_to_function(name)
        return found


_NUMBER_TYPES: dict[Any, Any] = {
    int: types.int64,
    np.int64: types.int64,
    float: types.float64,
    np.float64: types.float64,
    bool: types.boolean,
    np.bool_: types.boolean,
}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function with the package's options, and keep its programs on disk.

    Kernels release the interpreter lock, so Python threads run them in parallel. There is no other
    parallelism: Numba's own (``prange``) starts thread pools that a forked child cannot use, and
    can abort when two threads enter it. Kernels allocate nothing.
    """
    return _compiled(function, _OPTIONS)


def fused_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that may fuse products and sums, for bounds: their last bit is irrelevant."""
    return _compiled(function, FUSED)


def loose_kernel(function: Callable[..., Any]) -> Any:
    """A fused kernel with sums in any order: four times as fast for a sum of products."""
    return _compiled(function, {**_OPTIONS, "fastmath": {"contract", "reassoc"}})


def inlined_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that is inlined into its callers."""
    return _compiled(function, {**_OPTIONS, "forceinline": True})


def open_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that users write: it may allocate arrays, and is inlined into its callers."""
    return _compiled(function, {**_ALLOCATING, "forceinline": True})


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    return function if PLAIN_PYTHON else Kernel(function, options)


def contract(declaration: Callable[..., Any]) -> Any:
    """Turn a declaration into a call of the record's own method of that name."""
    return _contract(declaration, _OPTIONS, None)


def contract_with_default(declaration: Callable[..., Any]) -> Any:
    """A contract whose body serves for records without a method of that name."""
    return _contract(declaration, _OPTIONS, declaration)


def inlined_contract(declaration: Callable[..., Any]) -> Any:
    """A contract whose methods are inlined, for calls in innermost loops."""
    return _contract(declaration, {**_OPTIONS, "forceinline": True}, None)


def inlined_contract_with_default(declaration: Callable[..., Any]) -> Any:
    """The same as `contract_with_default`, for what is called millions of times."""
    return _contract(declaration, {**_OPTIONS, "forceinline": True}, declaration)


def open_contract(declaration: Callable[..., Any]) -> Any:
    """An inlined contract whose methods users write, and which may allocate arrays."""
    return _contract(declaration, {**_ALLOCATING, "forceinline": True}, None)


def python_contract(declaration: Method) -> Method:
    """A `contract_with_default` that no kernel asks for."""
    name = declaration.__name__

    @functools.wraps(declaration)
    def call(record: Any, *arguments: Any) -> Any:
        return getattr(type(record), name, declaration)(record, *arguments)

    return cast(Method, call)


def _contract(declaration: Callable[..., Any], options: dict[str, Any], default: Any) -> Any:
    name = declaration.__name__
    kernels: dict[Any, Kernel] = {}

    @functools.wraps(declaration)
    def call(record: Any, *arguments: Any) -> Any:
        return getattr(type(record), name, default)(record, *arguments)

    def choose(record: Any, *arguments: Any) -> Kernel | None:
        method = getattr(getattr(record, "instance_class", None), name, default)
        if method is None:
            return None
        if method not in kernels:
            kernels[method] = Kernel(method, options)
        return kernels[method]

    _dispatch(call, choose)
    return call


def compiled_as(implementation: Callable[..., Any], options: dict[str, Any] = _OPTIONS) -> Any:
    """Make kernels run another implementation of the decorated function."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        kernel = Kernel(implementation, options)
        _dispatch(function, lambda *arguments: kernel)
        return function

    return declare


def _dispatch(function: Callable[..., Any], choose: Callable[..., Kernel | None]) -> None:
    """Make calls of a function in kernels call the kernel chosen by the arguments' types."""

    class Template(_Template):
        key = function

        def generic(self, arguments: Any, named: Any) -> Any:
            kernel = choose(*arguments)
            return None if named or kernel is None else kernel.fragment(arguments).signature

        def get_impl_key(self, signature: Any) -> Any:
            kernel = choose(*signature.args)
            assert kernel is not None
            return kernel.fragment(signature.args).entry_point

    infer(Template)
    infer_global(function, types.Function(Template))


def instruction(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Make kernels replace a function by the instructions that the decorated one defines.

    The latter is called with Numba's context and the types of the arguments, and returns a
    signature and a code generator, as for `numba.extending.intrinsic`. Plain Python runs the
    function itself.
    """

    def register(define: Callable[..., Any]) -> Callable[..., Any]:
        template = make_intrinsic_template(function, define, function.__name__)
        infer(template)
        infer_global(function, types.Function(template))
        return define

    return register


def length(known: tuple[int, ...], otherwise: int) -> int:
    """The length of ``known`` as a constant of the kernel, or ``otherwise`` if it is empty.

    A loop of known length is unrolled and kept in registers: with two or three columns a query
    of the kd-tree takes less than half the time.
    """
    return len(known) or otherwise


@instruction(length)
def _length(context: Any, known: Any, otherwise: Any) -> Any:
    count = len(known)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(ir.IntType(64), count) if count else arguments[1]

    return types.int64(known, types.int64), code
