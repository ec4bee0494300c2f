"""Kernels of PTX with a mistake in each, their counters, and launches that do not fit."""

from __future__ import annotations

import json
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import stepwell as sw
from stepwell.backends.ptx.memory import FaultError, GlobalMemory, Region
from stepwell.backends.ptx.races import Accessors

from ..harness import floats

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %rd<9>;"


def module(body: str, parameters: str = ".param .u64 x, .param .u64 y", more: str = "") -> str:
    return f"{HEAD}{more}.visible .entry k({parameters})\n{{\n{REGISTERS}\n{body}\n}}\n"


AT = """
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mad.lo.s32 %r4, %r2, %r3, %r1;
ld.param.u64 %rd1, [x];
ld.param.u64 %rd2, [y];
mad.wide.u32 %rd3, %r4, 4, %rd1;
mad.wide.u32 %rd4, %r4, 4, %rd2;
"""
"""The number of a thread in the grid, and the addresses of its elements of x and y."""

REVERSED = module(
    f""".shared .align 4 .b8 tile[256];
{AT}
ld.global.f32 %f1, [%rd3];
mov.u32 %r5, tile;
shl.b32 %r6, %r1, 2;
add.s32 %r7, %r5, %r6;
st.shared.f32 [%r7], %f1;
bar.sync 0;
sub.s32 %r8, 252, %r6;
add.s32 %r8, %r8, %r5;
ld.shared.f32 %f2, [%r8];
st.global.f32 [%rd4], %f2;
ret;"""
)
"""Blocks of 64 elements, each of them reversed."""


def failing(text: str, *args: Any, **how: Any) -> sw.EmulationError:
    with pytest.raises(sw.EmulationError) as caught:
        sw.emulate(text, args, **{"grid": 1, "block": 64, **how})
    assert f"line {caught.value.line}: " in str(caught.value)
    return caught.value


def test_a_kernel_with_shared_memory() -> None:
    x, y = floats(300 * 64), np.zeros(300 * 64, np.float32)
    done = sw.emulate(REVERSED, [x, y], grid=300, block=64, undefined=[y])
    np.testing.assert_array_equal(y, x.reshape(-1, 64)[:, ::-1].ravel())
    assert (done.blocks, done.threads, done.shared_bytes) == (300, 64, 256)
    assert done.total("wavefronts") == 2 * 600
    assert (done.total("conflicts"), done.total("diverged"), done.coalescing) == (0, 0, 1.0)
    assert done.mix["barrier"] == 600


def test_a_removed_barrier_is_a_race() -> None:
    x, y = floats(64), np.zeros(64, np.float32)
    error = failing(REVERSED.replace("bar.sync 0;", ""), x, y)
    assert error.kind == "race"
    assert "was written by thread 63 of block 0, and no barrier lies between" in str(error)
    assert (error.block, error.thread) == ((0, 0, 0), (0, 0, 0))


def test_a_barrier_of_a_warp_orders_its_own_threads_alone() -> None:
    warp = REVERSED.replace("bar.sync 0;", "bar.warp.sync -1;")
    x = floats(64)
    assert failing(warp, x, np.zeros(64, np.float32)).kind == "race"
    small, y = warp.replace("252", "124"), np.zeros(32, np.float32)
    sw.emulate(small, [x[:32].copy(), y], grid=1, block=32)
    np.testing.assert_array_equal(y, x[31::-1])


@pytest.mark.parametrize(
    ("access", "kind"),
    [("st.global.f32 [%rd2], %f1;", "race"), ("red.global.add.f32 [%rd2], %f1;", None)],
)
def test_all_threads_write_to_one_element(access: str, kind: str | None) -> None:
    text = module(f"{AT} ld.global.f32 %f1, [%rd3]; {access} ret;")
    x, y = np.arange(300, dtype=np.float32), np.zeros(1, np.float32)
    if kind:
        assert failing(text, x, y, block=100, grid=3).kind == kind
        return
    sw.emulate(text, [x, y], grid=3, block=100)
    assert y[0] == x.sum()


def test_a_block_reads_what_another_one_writes() -> None:
    """A barrier orders the threads of its own block only."""
    body = f"""{AT}
st.global.f32 [%rd4], 0f3F800000;
bar.sync 0;
setp.lt.u32 %p1, %r1, 63;
@%p1 ld.global.f32 %f1, [%rd4+DISTANCE];
ret;"""
    x, y = np.zeros(1, np.float32), np.zeros(200, np.float32)
    sw.emulate(module(body.replace("DISTANCE", "4")), [x, y], grid=2, block=64)
    error = failing(module(body.replace("DISTANCE", "256")), x, y, grid=2)
    assert error.kind == "race"
    assert "was written by thread 0 of block 1" in str(error)


def test_a_write_after_a_read_is_a_race() -> None:
    text = module(f"{AT} ld.global.f32 %f1, [%rd2+4]; st.global.f32 [%rd4], %f1; ret;")
    error = failing(text, np.zeros(1, np.float32), np.zeros(64, np.float32))
    assert error.kind == "race"
    assert "was read by thread 0" in str(error)


def test_all_readers_since_a_barrier_are_remembered() -> None:
    """Threads 0 and 63 read in turn, and thread 63 writes."""
    body = f"""{AT}
setp.eq.u32 %p1, %r1, 0;
setp.eq.u32 %p2, %r1, 63;
@%p1 ld.global.f32 %f1, [%rd2];
@%p2 ld.global.f32 %f1, [%rd2];
@%p2 st.global.f32 [%rd2], %f1;
ret;"""
    error = failing(module(body), np.zeros(1, np.float32), np.zeros(1, np.float32))
    assert "was read by thread 0 of block 0" in str(error)


@pytest.mark.parametrize(
    ("by", "says"),
    [
        (4, "4 bytes at offset 256 are outside of the 256 of argument 0"),
        (-4, "4 bytes at offset -4 are outside of the 256 of argument 0"),
    ],
)
def test_accesses_outside_of_buffers(by: int, says: str) -> None:
    text = module(f"{AT} ld.global.f32 %f1, [%rd3+{by}]; st.global.f32 [%rd4], %f1; ret;")
    error = failing(text, floats(64), floats(64))
    assert error.kind == "bounds"
    assert says in str(error)
    assert error.thread == ((63, 0, 0) if by > 0 else (0, 0, 0))


def test_accesses_outside_of_shared_memory() -> None:
    error = failing(
        REVERSED.replace("sub.s32 %r8, 252", "sub.s32 %r8, 260"), floats(64), floats(64)
    )
    assert error.kind == "bounds"
    assert "outside of the 256 of the shared memory" in str(error)


def test_an_address_of_no_buffer() -> None:
    text = module("mov.u64 %rd1, 64; ld.global.f32 %f1, [%rd1]; ret;")
    assert "address 0x40 is in no buffer" in str(failing(text, floats(1), floats(1)))


def test_an_unaligned_access() -> None:
    error = failing(module(f"{AT} ld.global.f32 %f1, [%rd3+2]; ret;"), floats(65), floats(64))
    assert error.kind == "alignment"
    assert "offset 2 of argument 0 is not a multiple of 4" in str(error)
    wide = module(f"{AT} ld.global.v2.f32 {{%f1, %f2}}, [%rd3]; ret;")
    assert failing(wide, floats(65), floats(64)).thread == (1, 0, 0)


def test_a_buffer_may_begin_between_vectors() -> None:
    memory, region = GlobalMemory(), Region("x", np.zeros(64, np.uint8), 4, shift=8)
    assert memory.add(region) % 256 == 8
    np.testing.assert_array_equal(region.positions(np.array([8, 24]), 16, 16, None), [8, 24])
    with pytest.raises(FaultError, match="offset 16 of x is not a multiple of 16") as caught:
        region.positions(np.array([8, 16]), 16, 16, None)
    assert (caught.value.kind, caught.value.at) == ("alignment", 1)


def test_the_rest_of_the_last_vector_may_be_loaded() -> None:
    """Of memory that the run time lays out: LLVM loads it as a part of words, and ignores it."""
    region = Region("x", np.arange(1, 28, dtype=np.uint8), 4, padded=True)
    memory = GlobalMemory()
    memory.add(region)
    lanes = np.arange(2)
    who = Accessors(lanes, lanes * 0, lanes * 0, lanes * 0, 2, 1)
    at = region.positions(np.array([16, 16]), 16, 12, None)
    words = [region.load(at + n, np.dtype(np.uint32), who) for n in (4, 8)]
    assert [int(word[0]) for word in words] == [0x18171615, 0x001B1A19]
    with pytest.raises(FaultError, match="16 bytes at offset 16 are outside of the 27 of x"):
        region.positions(np.array([16]), 16, None, None)
    with pytest.raises(FaultError, match="outside"):
        region.positions(np.array([32]), 16, 4, None)


def test_what_is_loaded_and_not_used_is_no_access() -> None:
    """Of 16 bytes, LLVM uses 12 where there are no more; their address is a multiple of 16."""
    text = module(f"{AT} ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%rd1]; add.f32 %f5, %f1, %f3;")
    sw.emulate(text, [floats(3), floats(1)], grid=1, block=1)
    used = text.replace("%f1, %f3;", "%f1, %f4;")
    error = failing(used, floats(3), floats(1), block=1)
    assert (error.kind, str(error).partition(" at ")[0]) == ("bounds", "k: bounds: 16 bytes")
    error = failing(text.replace("[%rd1]", "[%rd1+8]"), floats(5), floats(1), block=1)
    assert error.kind == "alignment"
    assert "offset 8 of argument 0 is not a multiple of 16" in str(error)


def test_what_is_read_before_it_is_written() -> None:
    error = failing(REVERSED.replace("st.shared", "// st.shared"), floats(64), floats(64))
    assert error.kind == "uninitialised"
    assert "byte 252 of the shared memory" in str(error)
    y = np.zeros(64, np.float32)
    text = module(f"{AT} ld.global.f32 %f1, [%rd4]; ret;")
    sw.emulate(text, [floats(1), y], grid=1, block=64)
    assert failing(text, floats(1), y, undefined=[y]).kind == "uninitialised"


def test_a_permutation_reads_the_operands_whose_bytes_it_takes() -> None:
    text = module(f"{AT} prmt.b32 %r5, %r1, %r6, 0x3333U;\nst.global.u32 [%rd4], %r5;")
    sw.emulate(text, [floats(1), floats(1)], grid=1, block=1)
    for selector in ("0x3433U", "%r1"):
        error = failing(text.replace("0x3333U", selector), floats(1), floats(1), block=1)
        assert error.kind == "uninitialised"
        assert "register %r6" in str(error)


HALF = f"""{AT}
setp.lt.u32 %p1, %r1, 40;
@%p1 ld.global.f32 %f1, [%rd3];
mov.f32 %f2, %f1;
add.f32 %f3, %f2, %f2;
"""
"""Of 64 threads, the last 24 compute with a register that they have not written."""


@pytest.mark.parametrize(
    "use",
    [
        "st.global.f32 [%rd4], %f3;",
        "setp.gt.f32 %p2, %f3, 0f00000000; @%p2 bra end; end:",
        "cvt.rzi.u32.f32 %r9, %f3; mad.wide.u32 %rd5, %r9, 4, %rd1; ld.global.f32 %f4, [%rd5];",
        "red.global.add.f32 [%rd2], %f3;",
        "cvt.rzi.u32.f32 %r9, %f3; div.u32 %r9, %r1, %r9;",
        "selp.f32 %f4, %f1, %f3, %p1; st.global.f32 [%rd4], %f4;",
    ],
)
def test_what_depends_on_an_unwritten_register(use: str) -> None:
    """The error is where the register is read, and not where that comes to matter."""
    error = failing(module(f"{HALF}{use} ret;"), floats(64), floats(64))
    assert error.kind == "uninitialised"
    assert "register %f1" in str(error)
    assert "mov.f32 %f2, %f1" in str(error)
    assert error.thread == (40, 0, 0)


def test_unwritten_registers_that_are_not_selected() -> None:
    """LLVM computes with what is undefined, and discards it."""
    y = np.zeros(64, np.float32)
    text = f"{HALF}selp.f32 %f4, %f3, 0f3F800000, %p1; st.global.f32 [%rd4], %f4; ret;"
    sw.emulate(module(text), [np.ones(64, np.float32), y], grid=1, block=64)
    np.testing.assert_array_equal(y, [2.0] * 40 + [1.0] * 24)


def test_local_memory_holds_what_is_undefined() -> None:
    """As a register does: elements that pad a row are computed, and reach no result."""
    own = ".local .align 4 .b8 own[8];"
    text = f"""{own}{HALF}
st.local.f32 [own], %f3;
ld.local.f32 %f4, [own];
ld.local.f32 %f5, [own+4];
add.f32 %f6, %f4, %f5;
@%p1 st.global.f32 [%rd4], %f4;
"""
    y = np.zeros(64, np.float32)
    sw.emulate(module(f"{text} ret;"), [np.ones(64, np.float32), y], grid=1, block=64)
    assert y.sum() == 80
    for register, byte in (("%f4", 0), ("%f6", 4)):
        error = failing(module(f"{text} st.global.f32 [%rd4], {register}; ret;"), floats(64), y)
        assert error.kind == "uninitialised"
        assert f"byte {byte} of the local memory of the thread has not been written" in str(error)


def test_a_barrier_in_divergent_code() -> None:
    body = f"{AT} setp.lt.u32 %p1, %r1, 48; @%p1 bar.sync 0; ret;"
    error = failing(module(body), floats(1), floats(1), grid=3)
    assert error.kind == "barrier"
    assert "48 of the 64 threads of a block wait here for the others" in str(error)
    body = f"{AT} setp.lt.u32 %p1, %r1, 48; @%p1 bar.warp.sync 0xffffffff; ret;"
    error = failing(module(body), floats(1), floats(1))
    assert "16 of the 32 threads of a warp wait here for the others" in str(error)


def test_a_loop_that_does_not_end() -> None:
    error = failing(module("again: bra again;"), floats(1), floats(1), max_steps=1000)
    assert error.kind == "endless"
    assert "not ended after 1000 steps" in str(error)


def test_a_loop_that_nobody_repeats() -> None:
    body = f"{AT} again: setp.gt.u32 %p1, %r1, 99; @%p1 bra again; ret;"
    done = sw.emulate(module(body), [floats(1), floats(1)], grid=1, block=64, max_steps=100)
    assert [row.warps for row in done.lines[-2:]] == [2, 2]


def test_other_faults() -> None:
    x = floats(64)
    x.flags.writeable = False
    error = failing(module(f"{AT} st.global.f32 [%rd3], 0f00000000; ret;"), x, floats(1))
    assert error.kind == "read-only"
    assert "argument 0 cannot be written to" in str(error)
    error = failing(module(f"{AT} div.u32 %r5, %r1, %r1; ret;"), floats(1), floats(1))
    assert error.kind == "division"
    assert error.thread == (0, 0, 0)
    assert failing(module("trap;"), floats(1), floats(1)).kind == "trap"


def test_a_line_of_the_program_that_was_compiled() -> None:
    text = module(f"{AT}\n.loc 1 12 3\nld.global.f32 %f1, [%rd3+4]; ret;", more='.file 1 "a.py"\n')
    error = failing(text, floats(64), floats(64))
    assert error.source == "a.py:12"
    assert "a.py:12; line " in str(error)


SHUFFLE = f"""{AT}
ld.global.u32 %r10, [%rd3];
shfl.sync.MODE.b32 %r11|%p1, %r10, 3, BOUNDS, -1;
@!%p1 add.s32 %r11, %r11, 1000;
st.global.u32 [%rd4], %r11;
ret;"""


@pytest.mark.parametrize(
    ("mode", "bounds"), [("up", 0), ("down", 31), ("bfly", 31), ("idx", 31), ("idx", 0x181F)]
)
def test_shuffles(mode: str, bounds: int) -> None:
    x, y = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    text = module(SHUFFLE.replace("MODE", mode).replace("BOUNDS", str(bounds)))
    sw.emulate(text, [x, y], grid=1, block=64)
    n, warp = x % 32, x // 32 * 32
    source = {"up": n - 3, "down": n + 3, "bfly": n ^ 3, "idx": 3 + 0 * n}[mode].astype(np.int32)
    if bounds >> 8:
        source = (n & 0x18) + 3
    inside = (source >= 0) & (source < 32)
    np.testing.assert_array_equal(y, np.where(inside, warp + source, x + 1000))


def test_votes_and_reductions_of_warps() -> None:
    body = f"""{AT}
setp.lt.u32 %p1, %r1, 40;
vote.sync.ballot.b32 %r5, %p1, -1;
redux.sync.add.u32 %r6, %r1, -1;
add.s32 %r7, %r5, %r6;
st.global.u32 [%rd4], %r7;
ret;"""
    y = np.zeros(64, np.uint32)
    sw.emulate(module(body), [floats(1), y], grid=1, block=64)
    sums = np.arange(64).reshape(2, 32).sum(1)
    wanted = np.array([0xFFFFFFFF, 0xFF]) + sums
    np.testing.assert_array_equal(y, wanted.repeat(32).astype(np.uint32))


COPY = module(
    f""".shared .align 16 .b8 tile[1024];
{AT}
mov.u32 %r5, tile;
shl.b32 %r6, %r1, 4;
add.s32 %r7, %r5, %r6;
mad.wide.u32 %rd5, %r1, 16, %rd1;
cp.async.cg.shared.global [%r7], [%rd5], 16;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
shl.b32 %r6, %r1, 2;
add.s32 %r7, %r5, %r6;
ld.shared.f32 %f1, [%r7];
st.global.f32 [%rd4], %f1;
ret;"""
)


def test_asynchronous_copies() -> None:
    x, y = floats(256), np.zeros(64, np.float32)
    sw.emulate(COPY, [x, y], grid=1, block=64)
    np.testing.assert_array_equal(y, x[:64])
    for text, says in (
        (COPY.replace("wait_group 0", "wait_group 1"), "an asynchronous copy"),
        (COPY.replace("cp.async.commit_group;", ""), "an asynchronous copy"),
        (COPY.replace("bar.sync 0;", ""), "no barrier lies between"),
    ):
        error = failing(text, x, y)
        assert error.kind == "race"
        assert says in str(error)


@pytest.mark.parametrize(("stride", "ways"), [(1, 1), (2, 2), (3, 1), (32, 32), (33, 1)])
def test_bank_conflicts(stride: int, ways: int) -> None:
    body = f""".shared .align 4 .b8 tile[8192];
{AT} mul.lo.s32 %r5, %r1, {4 * stride}; mov.u32 %r6, tile; add.s32 %r6, %r6, %r5;
st.shared.f32 [%r6], 0f00000000;
ret;"""
    done = sw.emulate(module(body), [floats(1), floats(1)], grid=4, block=32)
    assert done.total("wavefronts") == 4 * ways
    assert done.total("conflicts") == 4 * (ways - 1)


def test_a_word_for_all_is_one_wavefront() -> None:
    """Accesses of 16 bytes are made by quarter warps, of which each takes all banks."""
    body = f""".shared .align 16 .b8 tile[512];
{AT} mov.u32 %r5, tile; shl.b32 %r6, %r1, 4; add.s32 %r6, %r6, %r5;
st.shared.v4.b32 [%r6], {{%r1, %r1, %r1, %r1}};
bar.sync 0;
ld.shared.b32 %r7, [%r5];
ret;"""
    done = sw.emulate(module(body), [floats(1), floats(1)], grid=1, block=32)
    assert [row.wavefronts for row in done.lines if "shared" in row.group] == [4, 1]
    assert done.total("conflicts") == 0


@pytest.mark.parametrize(("stride", "sectors", "used"), [(1, 4, 1), (2, 8, 1 / 2), (8, 32, 1 / 8)])
def test_sectors_of_global_memory(stride: int, sectors: int, used: float) -> None:
    body = f"{AT} mad.wide.u32 %rd3, %r1, {4 * stride}, %rd1; ld.global.f32 %f1, [%rd3]; ret;"
    done = sw.emulate(module(body), [floats(256), floats(1)], grid=1, block=32)
    assert done.total("sectors") == sectors
    assert done.coalescing == used


def test_divergence_is_counted_by_warps() -> None:
    body = f"{AT} setp.lt.u32 %p1, %r1, 40; @%p1 bra over; add.s32 %r5, %r1, 1; over: ret;"
    done = sw.emulate(module(body), [floats(1), floats(1)], grid=3, block=64)
    assert done.total("diverged") == 3
    (added,) = [row for row in done.lines if row.text.startswith("add.s32 %r5")]
    assert (added.warps, added.threads) == (3, 3 * 24)


def test_counters_as_text() -> None:
    x, y = floats(64), np.zeros(64, np.float32)
    done = sw.emulate(REVERSED, [x, y], grid=1, block=64)
    assert "k: 1 blocks of 64 threads, 256 bytes of shared memory" in str(done)
    assert "global memory: 16 sectors, 100.0% of them used" in str(done)
    assert done.listing().splitlines()[-1].endswith("ret")
    assert json.loads(done.json())["sectors"] == 16


LLVM_IR = """
target triple = "nvptx64-nvidia-cuda"
@table = internal addrspace(4) constant [4 x float] [float 1.0, float 2.0, float 4.0, float 8.0]
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare float @llvm.fma.f32(float, float, float)
define ptx_kernel void @scaled(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n, float %c) {
  %own = alloca [4 x float]
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %in = icmp slt i32 %t, %n
  br i1 %in, label %work, label %end
work:
  %m = and i32 %t, 3
  %p = getelementptr float, ptr addrspace(1) %x, i32 %t
  %v = load float, ptr addrspace(1) %p
  %place = getelementptr float, ptr %own, i32 %m
  store volatile float %v, ptr %place
  %w = load volatile float, ptr %place
  %q = getelementptr float, ptr addrspace(4) @table, i32 %m
  %f = load float, ptr addrspace(4) %q
  %r = call float @llvm.fma.f32(float %w, float %f, float %c)
  %o = getelementptr float, ptr addrspace(1) %y, i32 %t
  store float %r, ptr addrspace(1) %o
  br label %end
end:
  ret void
}
"""


def ptx(ir: str) -> str:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    machine = target.create_target_machine(cpu="sm_90", features="+ptx80")
    return machine.emit_assembly(llvm.parse_assembly(ir))


def test_a_kernel_of_llvm() -> None:
    """With a table of constants, memory of each thread, and generic addresses."""
    x, y = floats(50), np.zeros(50, np.float32)
    done = sw.emulate(ptx(LLVM_IR), [x, y, 49, 0.5], grid=1, block=64)
    wanted = x * np.tile([1, 2, 4, 8], 13)[:50].astype(np.float32) + np.float32(0.5)
    np.testing.assert_array_equal(y[:49], wanted[:49])
    assert (y[49], done.kernel) == (0, "scaled")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"args": [1]}, "wrong number of arguments, expected 2, got 1"),
        ({"grid": 0}, "wrong grid, expected one to three positive numbers, got 0"),
        ({"block": (2, 2, 2, 2)}, "wrong block, expected one to three positive numbers"),
        ({"block": 2048}, "too many threads in a block, expected at most 1024, got 2048"),
        ({"grid": 1 << 25}, "too many threads, expected less than"),
        ({"shared_bytes": 1 << 20}, "too much shared memory in a block"),
        ({"kernel": "other"}, "no such kernel, expected one of k, got other"),
        ({"args": [np.zeros((4, 4))[:, 1], np.zeros(4)]}, "expected a C-contiguous array"),
        ({"args": [1.5, np.zeros(3)[:1]]}, ""),
        ({"args": ["a", np.zeros(4)]}, "expected an array or a number, got str"),
        ({"args": [np.float32(1), np.zeros(4)]}, "expected 8 bytes, got 4"),
        ({"undefined": [np.zeros(1)]}, "an undefined array is not an argument"),
    ],
)
def test_launches_that_do_not_fit(change: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"args": [floats(64), floats(64)], "grid": 1, "block": 64, **change}
    text = module("ret;")
    if not says:
        sw.emulate(text, **given)
        return
    with pytest.raises(sw.InputError, match=says):
        sw.emulate(text, given.pop("args"), **given)


def test_arrays_that_overlap() -> None:
    x = floats(8)
    sw.emulate(module("ret;"), [x, x], grid=1, block=1)
    with pytest.raises(sw.InputError, match="arguments 0 and 1 overlap"):
        sw.emulate(module("ret;"), [x, x[1:]], grid=1, block=1)


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("int main() {}", sw.InputError, "no .version, as every module has"),
        (HEAD, sw.InputError, "there is no kernel"),
        (module("bra nowhere;"), sw.InputError, "no such label, got nowhere"),
        (module("mov.u32 %r1, %other;"), sw.InputError, "undeclared register, got %other"),
        (module("mov.u64 %rd1, %r1;"), sw.InputError, "wrong register, expected .u64"),
        (module("add.s32 %r1, %r2;"), sw.InputError, "an operand is missing"),
        (module("ld.global.f32 %f1, %rd1;"), sw.InputError, "not an address"),
        (module("ld.global.v2.f32 %f1, [%rd1];"), sw.InputError, "wrong number of registers"),
        (module("ld.param.u64 %rd1, [z];"), sw.InputError, "not a parameter of the kernel"),
        (module("add.s32 %r1, 1.2.3, 4;"), sw.InputError, "not a constant"),
        (module("ret"), sw.InputError, "cannot read line"),
        (module("ret;")[:-3], sw.InputError, "a body does not end"),
        (module("wgmma.fence.sync.aligned;"), sw.UnsupportedError, "cannot emulate wgmma.fence"),
        (module("add.rz.f32 %f1, %f1, %f2;"), sw.UnsupportedError, "cannot emulate add.rz.f32"),
        (module("add.f16x2 %r1, %r1, %r2;"), sw.UnsupportedError, "unknown type, got .f16x2"),
        (module("bar.sync 0, 32;"), sw.UnsupportedError, "cannot emulate bar.sync"),
        (module("call f;"), sw.UnsupportedError, "cannot emulate call"),
    ],
)
def test_texts_that_are_not_known(text: str, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        sw.emulate(text, [floats(1), floats(1)], grid=1, block=1)


def test_one_of_several_kernels() -> None:
    text = module("ret;") + ".entry other()\n{\n ret;\n}\n"
    assert sw.emulate(text, [], grid=1, block=1, kernel="other").kernel == "other"
    with pytest.raises(sw.InputError, match="several kernels, expected one of k, other"):
        sw.emulate(text, [], grid=1, block=1)
