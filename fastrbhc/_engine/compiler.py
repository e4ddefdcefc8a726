"""How kernels are compiled: fragments once, and machine code for whole programs only.

Numba compiles every function into machine code of its own, together with copies of its callees,
although only a few functions are ever called from Python. Here a kernel that another kernel calls
is a *fragment*: it is typed and lowered to LLVM's intermediate representation (IR), and no further.
A kernel that Python calls is a *program*. Its IR and that of all fragments below it form one
module, which is optimised and compiled to machine code once. This took less than half the time for
trees of 1,000 × 3 rows.

Within a program every fragment has internal linkage, so the optimiser knows all of its callers.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core import cgutils, typed_passes, untyped_passes
from numba.core.codegen import CodeLibrary
from numba.core.codegen import JITCodeLibrary as _JITCodeLibrary
from numba.core.compiler import CompilerBase as _CompilerBase
from numba.core.compiler import DefaultPassBuilder, PassManager
from numba.core.compiler_lock import require_global_compiler_lock
from numba.core.compiler_machinery import register_pass

from fastrbhc._engine.interrupts import answer

# Numba's own annotations are recent and partial.
_register: Any = register_pass
_Lowering: Any = typed_passes.NativeLowering
_PACKAGE = __name__.split(".")[0]
JITCodeLibrary: Any = _JITCodeLibrary
CompilerBase: Any = _CompilerBase


class Fragment(JITCodeLibrary):
    """The IR of one kernel, which is linked into programs as text."""

    def __init__(self, codegen: Any, name: str) -> None:
        CodeLibrary.__init__(self, codegen, name)
        self._linking_libraries: list[Any] = []
        self.texts: list[str] = []
        self.environment: tuple[str, Any] | None = None

    def add_ir_module(self, ir_module: Any) -> None:
        self.texts.append(cgutils.normalize_ir_text(str(ir_module)))

    def add_linking_library(self, library: Any) -> None:
        _link_later(self, library)

    def _ensure_finalized(self) -> None:
        """No machine code is made of a fragment alone."""


class Program(JITCodeLibrary):
    """The machine code of a kernel that Python calls, with all fragments below it."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._texts: list[str] = []
        self._fragments: list[Fragment] = []

    def add_ir_module(self, ir_module: Any) -> None:
        self._raise_if_finalized()
        self._texts.append(cgutils.normalize_ir_text(str(ir_module)))

    def add_linking_library(self, library: Any) -> None:
        _link_later(self, library)

    def finalize(self) -> None:
        require_global_compiler_lock()
        self._raise_if_finalized()
        module = self._final_module
        module.data_layout = self._codegen._data_layout
        answer()
        for text in self._texts:
            module.link_in(llvm.parse_assembly(text))
        exported = {f.name for f in module.functions if not f.is_declaration}
        for library in self._everything_below():
            if hasattr(library, "_reload_init"):  # from Numba 0.63 on
                self._reload_init.update(library._reload_init)
            if isinstance(library, Fragment):
                self._fragments.append(library)
                for text in library.texts:
                    module.link_in(_parsed(text))
            else:
                module.link_in(library._get_module_for_linking(), preserve=True)
        for function in module.functions:
            if not function.is_declaration and function.name not in exported:
                function.linkage = llvm.Linkage.internal
        answer()
        passes, builder = self._codegen._module_pass_manager()
        passes.run(module, builder)
        module.verify()
        answer()  # the last time: from here on the machine code is registered
        self._finalize_final_module()

    def set_environments(self) -> None:
        """Tell the machine code the addresses of the constants that Numba stores outside of it."""
        for fragment in self._fragments:
            name, environment = fragment.environment or ("", None)
            if self._codegen._engine.is_symbol_defined(name):
                self._codegen.set_env(name, environment)

    def _everything_below(self) -> list[Any]:
        seen: dict[Any, None] = {}
        waiting = list(self._linking_libraries)
        while waiting:
            library = waiting.pop()
            if library not in seen:
                seen[library] = None
                if isinstance(library, Fragment):
                    waiting += library._linking_libraries
        return list(seen)


def _parsed(text: str) -> Any:
    """The module of a fragment. Functions that unpack exceptions may be part of several."""
    module = llvm.parse_assembly(text)
    for function in module.functions:
        if not function.is_declaration and function.linkage == llvm.Linkage.external:
            function.linkage = llvm.Linkage.linkonce_odr
    return module


def _link_later(target: Any, library: Any) -> None:
    library._ensure_finalized()
    target._linking_libraries.append(library)


@_register(mutates_CFG=True, analysis_only=False)
class _FragmentLowering(_Lowering):
    _name = "fragment_lowering"

    def run_pass(self, state: Any) -> bool:
        library = Fragment(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library = library
        state.flags.no_cpython_wrapper = True
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        name = state.targetctx.get_env_name(lowered.fndesc)
        library.environment = name, lowered.env
        # A stand-in for the machine code, by which callers find the fragment; never called.
        stand_in = _dynfunc.make_function(
            lowered.fndesc.lookup_module(), name, "a fragment", 0, lowered.env, (library,)
        )
        state.targetctx.insert_user_function(stand_in, lowered.fndesc, [library])
        state["cr"] = lowered._replace(cfunc=stand_in)
        return True


@_register(mutates_CFG=True, analysis_only=False)
class _ProgramLowering(_Lowering):
    _name = "program_lowering"

    def run_pass(self, state: Any) -> bool:
        library = Program(state.targetctx.codegen(), state.func_id.func_qualname)
        library.enable_object_caching()
        state.library = library
        super().run_pass(state)
        library.set_environments()
        return True


def _passes(lowering: Any) -> list[PassManager]:
    """Numba's passes, except those that no kernel needs.

    Kernels have no closures, generators, ``with`` blocks, parallel loops, inlining by Numba
    or lists of mixed types. Each pass costs about a millisecond per kernel.
    """
    untyped, typed = untyped_passes, typed_passes
    manager = PassManager("kernel")
    for kind in (
        untyped.TranslateByteCode,
        untyped.FixupArgs,
        untyped.IRProcessing,
        untyped.RewriteSemanticConstants,
        untyped.DeadBranchPrune,
        untyped.GenericRewrites,
        untyped.ReconstructSSA,
        untyped.DeadBranchPrune,
        typed.NopythonTypeInference,
        typed.PreLowerStripPhis,
        typed.IRLegalization,
        typed.AnnotateTypes,
        lowering,
        typed.NoPythonBackend,
    ):
        manager.add_pass(kind, kind._name)
    manager.finalize()
    return [manager]


def _all_passes(state: Any, lowering: Any) -> list[PassManager]:
    """All of Numba's passes: for functions that users write."""
    manager = PassManager("open kernel")
    for kind, name in DefaultPassBuilder.define_nopython_pipeline(state).passes:
        manager.add_pass(lowering if kind is typed_passes.NativeLowering else kind, name)
    manager.finalize()
    return [manager]


class FragmentCompiler(CompilerBase):
    """For kernels that other kernels call."""

    def define_pipelines(self) -> list[PassManager]:
        answer()
        if self.state.func_id.modname.split(".")[0] == _PACKAGE:
            return _passes(_FragmentLowering)
        return _all_passes(self.state, _FragmentLowering)


class ProgramCompiler(CompilerBase):
    """For kernels that Python calls."""

    def define_pipelines(self) -> list[PassManager]:
        answer()
        return _passes(_ProgramLowering)
