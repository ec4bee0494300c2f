;;; Local buffers of kernels on the heap: memory from the hooks of the program. Where it has none, the
;;; call ends there and is an error.
;;;
;;; A scope is a call, or a tile that runs on some thread. It has a mark, which `_longjmp` goes back
;;; to, the program, the scope that it interrupts, and the head of a list of its blocks: a block is a
;;; header of 64 bytes, with the one before and after it and its size, then the buffer. The one that
;;; begins at the mark releases what is left. Kernels hold nothing else, so that leaving them from
;;; within is safe.

; The mark is larger than `jmp_buf` of any C library.
%Scope = type { [1024 x i8], ptr, ptr, ptr }
; The one before (a block, or null for the head), the one after, bytes
%Block = type { ptr, ptr, i64 }

@scope = thread_local global ptr null

; From the C library, or from code.py where there is none
declare i32 @_setjmp(ptr) returns_twice nounwind
declare void @_longjmp(ptr, i32) noreturn nounwind

; From memory.ll
declare ptr @acquire(ptr, i64)
declare void @release(ptr, ptr, i64)

define void @enter_scope(ptr %scope, ptr %program) nounwind {
  %program_at = getelementptr %Scope, ptr %scope, i32 0, i32 1
  %outer_at = getelementptr %Scope, ptr %scope, i32 0, i32 2
  %head_at = getelementptr %Scope, ptr %scope, i32 0, i32 3
  %outer = load ptr, ptr @scope
  store ptr %program, ptr %program_at
  store ptr %outer, ptr %outer_at
  store ptr null, ptr %head_at
  store ptr %scope, ptr @scope
  ret void
}

; Releases the blocks that are left.
define void @leave_scope(ptr %scope) nounwind {
entry:
  %outer_at = getelementptr %Scope, ptr %scope, i32 0, i32 2
  %head_at = getelementptr %Scope, ptr %scope, i32 0, i32 3
  %outer = load ptr, ptr %outer_at
  store ptr %outer, ptr @scope
  br label %look
look:
  %block = load ptr, ptr %head_at
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %drop
drop:
  call void @drop_block(ptr %scope, ptr %block)
  br label %look
done:
  ret void
}

; Ends the call or tile that a thread is in.
define void @give_up() noinline noreturn nounwind {
  %scope = load ptr, ptr @scope
  call void @_longjmp(ptr %scope, i32 1)
  unreachable
}

; A buffer for the kernel that a thread is in.
define ptr @take_local(i64 %bytes) noinline nounwind {
entry:
  %scope = load ptr, ptr @scope
  %program_at = getelementptr %Scope, ptr %scope, i32 0, i32 1
  %head_at = getelementptr %Scope, ptr %scope, i32 0, i32 3
  %program = load ptr, ptr %program_at
  %whole = add i64 %bytes, 64
  %block = call ptr @acquire(ptr %program, i64 %whole)
  %none = icmp eq ptr %block, null
  br i1 %none, label %fail, label %fill
fail:
  call void @give_up()
  unreachable
fill:
  %after_at = getelementptr %Block, ptr %block, i32 0, i32 1
  %bytes_at = getelementptr %Block, ptr %block, i32 0, i32 2
  %after = load ptr, ptr %head_at
  store ptr null, ptr %block
  store ptr %after, ptr %after_at
  store i64 %whole, ptr %bytes_at
  store ptr %block, ptr %head_at
  %last = icmp eq ptr %after, null
  br i1 %last, label %done, label %join
join:
  store ptr %block, ptr %after
  br label %done
done:
  %buffer = getelementptr i8, ptr %block, i64 64
  ret ptr %buffer
}

define void @release_local(ptr %buffer) noinline nounwind {
  %block = getelementptr i8, ptr %buffer, i64 -64
  %scope = load ptr, ptr @scope
  call void @drop_block(ptr %scope, ptr %block)
  ret void
}

; Takes a block out of the list of its scope, and releases it.
define void @drop_block(ptr %scope, ptr %block) nounwind {
entry:
  %after_at = getelementptr %Block, ptr %block, i32 0, i32 1
  %bytes_at = getelementptr %Block, ptr %block, i32 0, i32 2
  %before = load ptr, ptr %block
  %after = load ptr, ptr %after_at
  %bytes = load i64, ptr %bytes_at
  %first = icmp eq ptr %before, null
  %head_at = getelementptr %Scope, ptr %scope, i32 0, i32 3
  %next_at = getelementptr %Block, ptr %before, i32 0, i32 1
  %place = select i1 %first, ptr %head_at, ptr %next_at
  store ptr %after, ptr %place
  %last = icmp eq ptr %after, null
  br i1 %last, label %free, label %join
join:
  store ptr %before, ptr %after
  br label %free
free:
  %program_at = getelementptr %Scope, ptr %scope, i32 0, i32 1
  %program = load ptr, ptr %program_at
  call void @release(ptr %program, ptr %block, i64 %bytes)
  ret void
}
