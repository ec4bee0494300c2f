;;; The memory of an exported program, taken and released by hooks of the caller.
;;; A program is the hooks, the address of its first frame, what it has mapped, and its constants.

; allocate(state, alignment, bytes), release(state, memory, bytes), state
%Hooks = type { ptr, ptr, ptr }

; Made by code.py
declare ptr @program_head(ptr)
declare ptr @program_constants(ptr)
declare i64 @program_bytes()
declare i64 @frame_bytes()
declare ptr @frame_busy(ptr)
declare ptr @frame_next(ptr)
declare ptr @frame_constants(ptr)
declare ptr @frame_arena(ptr)
declare ptr @frame_arena_bytes(ptr)
declare ptr @system_allocate(i64, i64)

; From the C library
declare void @free(ptr)

; From frames.ll
declare ptr @stepwell_frame(ptr)

; The C library takes multiples of the alignment.
define ptr @allocate_by_default(ptr %state, i64 %alignment, i64 %bytes) nounwind {
  %last = sub i64 %alignment, 1
  %mask = sub i64 0, %alignment
  %more = add i64 %bytes, %last
  %whole = and i64 %more, %mask
  %memory = call ptr @system_allocate(i64 %alignment, i64 %whole)
  ret ptr %memory
}

define void @release_by_default(ptr %state, ptr %memory, i64 %bytes) nounwind {
  call void @free(ptr %memory)
  ret void
}

; Whether hooks may be called: none at all, or both functions.
define i1 @are_hooks(ptr %given) nounwind {
entry:
  %none = icmp eq ptr %given, null
  br i1 %none, label %yes, label %look
look:
  %release_at = getelementptr %Hooks, ptr %given, i32 0, i32 1
  %allocate = load ptr, ptr %given
  %release = load ptr, ptr %release_at
  %a = icmp ne ptr %allocate, null
  %b = icmp ne ptr %release, null
  %both = and i1 %a, %b
  ret i1 %both
yes:
  ret i1 true
}

; Copies hooks; null stands for the C library's functions.
define void @take_hooks(ptr %to, ptr %given) nounwind {
entry:
  %none = icmp eq ptr %given, null
  br i1 %none, label %default, label %copy
default:
  %to_release = getelementptr %Hooks, ptr %to, i32 0, i32 1
  %to_state = getelementptr %Hooks, ptr %to, i32 0, i32 2
  store ptr @allocate_by_default, ptr %to
  store ptr @release_by_default, ptr %to_release
  store ptr null, ptr %to_state
  ret void
copy:
  %hooks = load %Hooks, ptr %given
  store %Hooks %hooks, ptr %to
  ret void
}

define void @release(ptr %hooks, ptr %memory, i64 %bytes) nounwind {
  %function_at = getelementptr %Hooks, ptr %hooks, i32 0, i32 1
  %state_at = getelementptr %Hooks, ptr %hooks, i32 0, i32 2
  %function = load ptr, ptr %function_at
  %state = load ptr, ptr %state_at
  call void %function(ptr %state, ptr %memory, i64 %bytes)
  ret void
}

; Memory at a multiple of 64 bytes; null where the hook has none, or none that is aligned.
define ptr @acquire(ptr %hooks, i64 %bytes) nounwind {
entry:
  %state_at = getelementptr %Hooks, ptr %hooks, i32 0, i32 2
  %function = load ptr, ptr %hooks
  %state = load ptr, ptr %state_at
  %memory = call ptr %function(ptr %state, i64 64, i64 %bytes)
  %address = ptrtoint ptr %memory to i64
  %rest = and i64 %address, 63
  %aligned = icmp eq i64 %rest, 0
  br i1 %aligned, label %done, label %drop
drop:
  call void @release(ptr %hooks, ptr %memory, i64 %bytes)
  ret ptr null
done:
  ret ptr %memory
}

; A program without frames; null where there is no memory for it.
define ptr @new_program(ptr %given) nounwind {
entry:
  %hooks = alloca %Hooks, align 8
  call void @take_hooks(ptr %hooks, ptr %given)
  %bytes = call i64 @program_bytes()
  %program = call ptr @acquire(ptr %hooks, i64 %bytes)
  %none = icmp eq ptr %program, null
  br i1 %none, label %done, label %fill
fill:
  %head = call ptr @program_head(ptr %program)
  %all = load %Hooks, ptr %hooks
  store %Hooks %all, ptr %program
  store ptr null, ptr %head
  br label %done
done:
  ret ptr %program
}

; A frame for a call: a free one, or a new one that joins the list; null without memory.
define ptr @begin_call(ptr %program) nounwind {
entry:
  %head = call ptr @program_head(ptr %program)
  %free = call ptr @stepwell_frame(ptr %head)
  %found = icmp ne ptr %free, null
  br i1 %found, label %done, label %more
more:
  %bytes = call i64 @frame_bytes()
  %frame = call ptr @acquire(ptr %program, i64 %bytes)
  %none = icmp eq ptr %frame, null
  br i1 %none, label %done, label %fill
fill:
  %busy = call ptr @frame_busy(ptr %frame)
  %next = call ptr @frame_next(ptr %frame)
  %table_at = call ptr @frame_constants(ptr %frame)
  %arena_at = call ptr @frame_arena(ptr %frame)
  %size_at = call ptr @frame_arena_bytes(ptr %frame)
  %table = call ptr @program_constants(ptr %program)
  store i64 1, ptr %busy
  store ptr %table, ptr %table_at
  store ptr null, ptr %arena_at
  store i64 0, ptr %size_at
  br label %push
push:
  %first = load atomic ptr, ptr %head acquire, align 8
  store ptr %first, ptr %next
  %swap = cmpxchg ptr %head, ptr %first, ptr %frame acq_rel acquire
  %pushed = extractvalue { ptr, i1 } %swap, 1
  br i1 %pushed, label %done, label %push
done:
  %result = phi ptr [ %free, %entry ], [ null, %more ], [ %frame, %push ]
  ret ptr %result
}

; Lets go of the arena of a frame.
define void @drop_arena(ptr %hooks, ptr %frame) nounwind {
entry:
  %arena_at = call ptr @frame_arena(ptr %frame)
  %size_at = call ptr @frame_arena_bytes(ptr %frame)
  %arena = load ptr, ptr %arena_at
  %bytes = load i64, ptr %size_at
  %none = icmp eq ptr %arena, null
  br i1 %none, label %done, label %drop
drop:
  call void @release(ptr %hooks, ptr %arena, i64 %bytes)
  store ptr null, ptr %arena_at
  store i64 0, ptr %size_at
  br label %done
done:
  ret void
}

; Gives a frame an arena of so many bytes; whether there is memory for it.
define i1 @grow_arena(ptr %hooks, ptr %frame, i64 %bytes) nounwind {
entry:
  call void @drop_arena(ptr %hooks, ptr %frame)
  %arena = call ptr @acquire(ptr %hooks, i64 %bytes)
  %found = icmp ne ptr %arena, null
  br i1 %found, label %keep, label %done
keep:
  %arena_at = call ptr @frame_arena(ptr %frame)
  %size_at = call ptr @frame_arena_bytes(ptr %frame)
  store ptr %arena, ptr %arena_at
  store i64 %bytes, ptr %size_at
  br label %done
done:
  ret i1 %found
}

; Releases the frames of a program, then the program.
define void @delete_program(ptr %program) nounwind {
entry:
  %hooks = alloca %Hooks, align 8
  call void @take_hooks(ptr %hooks, ptr %program)
  %head = call ptr @program_head(ptr %program)
  %bytes = call i64 @frame_bytes()
  br label %look
look:
  %frame = load ptr, ptr %head
  %none = icmp eq ptr %frame, null
  br i1 %none, label %done, label %drop
drop:
  %next = call ptr @frame_next(ptr %frame)
  %following = load ptr, ptr %next
  store ptr %following, ptr %head
  call void @drop_arena(ptr %hooks, ptr %frame)
  call void @release(ptr %hooks, ptr %frame, i64 %bytes)
  br label %look
done:
  %size = call i64 @program_bytes()
  call void @release(ptr %hooks, ptr %program, i64 %size)
  ret void
}
