;;; Tiles whose kernels allocate local buffers: each is a scope of `locals.ll` on the thread that runs it.

; As in locals.ll
%Scope = type { [1024 x i8], ptr, ptr, ptr }
; What tiles run, on what, for which program, and whether one had no memory
%Tiles = type { ptr, ptr, ptr, i32 }

@scope = external thread_local global ptr

; From the C library
declare i32 @_setjmp(ptr) returns_twice nounwind

; From thread_pool.ll
declare void @stepwell_parallel_tiles(ptr, ptr, i64, i64, i64)

; From locals.ll
declare void @enter_scope(ptr, ptr)
declare void @leave_scope(ptr)
declare void @give_up()

; Runs tiles on threads: without memory in one, the scope of the caller ends as well.
define void @run_tiles(ptr %body, ptr %context, i64 %count, i64 %threads, i64 %order) nounwind {
entry:
  %tiles = alloca %Tiles, align 8
  %scope = load ptr, ptr @scope
  %program_at = getelementptr %Scope, ptr %scope, i32 0, i32 1
  %program = load ptr, ptr %program_at
  %context_at = getelementptr %Tiles, ptr %tiles, i32 0, i32 1
  %for_at = getelementptr %Tiles, ptr %tiles, i32 0, i32 2
  %failed_at = getelementptr %Tiles, ptr %tiles, i32 0, i32 3
  store ptr %body, ptr %tiles
  store ptr %context, ptr %context_at
  store ptr %program, ptr %for_at
  store i32 0, ptr %failed_at
  call void @stepwell_parallel_tiles(ptr @run_tile, ptr %tiles, i64 %count, i64 %threads, i64 %order)
  %failed = load atomic i32, ptr %failed_at monotonic, align 4
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %done, label %fail
fail:
  call void @give_up()
  unreachable
done:
  ret void
}

define void @run_tile(ptr %tiles, i64 %tile) nounwind {
entry:
  %scope = alloca %Scope, align 16
  %context_at = getelementptr %Tiles, ptr %tiles, i32 0, i32 1
  %for_at = getelementptr %Tiles, ptr %tiles, i32 0, i32 2
  %failed_at = getelementptr %Tiles, ptr %tiles, i32 0, i32 3
  %failed = load atomic i32, ptr %failed_at monotonic, align 4
  %skip = icmp ne i32 %failed, 0
  br i1 %skip, label %done, label %enter
enter:
  %program = load ptr, ptr %for_at
  call void @enter_scope(ptr %scope, ptr %program)
  %again = call i32 @_setjmp(ptr %scope)
  %begins = icmp eq i32 %again, 0
  br i1 %begins, label %run, label %fail
run:
  %body = load ptr, ptr %tiles
  %context = load ptr, ptr %context_at
  call void %body(ptr %context, i64 %tile)
  br label %leave
fail:
  store atomic i32 1, ptr %failed_at monotonic, align 4
  br label %leave
leave:
  call void @leave_scope(ptr %scope)
  br label %done
done:
  ret void
}
