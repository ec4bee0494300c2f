;;; The processor that a thread runs on. A processor is a bit of a mask; on a machine with more than
;;; 1024 of them threads stay where they are.

@caller = external global i32, align 4

declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare ptr @memcpy(ptr, ptr, i64)

define i32 @processor() nounwind {
  %number = call i32 @sched_getcpu()
  ret i32 %number
}

; Moves to another processor if the caller was on this one when it woke the workers.
; For that the thread may not run here for a moment; afterwards it may run where it could before.
define void @make_way() nounwind {
entry:
  %allowed = alloca [128 x i8], align 16
  %others = alloca [128 x i8], align 16
  %here = call i32 @sched_getcpu()
  %there = load atomic i32, ptr @caller monotonic, align 4
  %together = icmp eq i32 %here, %there
  br i1 %together, label %ask, label %end
ask:
  %failed = call i32 @sched_getaffinity(i32 0, i64 128, ptr %allowed)
  %known = icmp eq i32 %failed, 0
  br i1 %known, label %move, label %end
move:
  %copied = call ptr @memcpy(ptr %others, ptr %allowed, i64 128)
  %byte = lshr i32 %here, 3
  %place = getelementptr i8, ptr %others, i32 %byte
  %eight = load i8, ptr %place, align 1
  %bit = and i32 %here, 7
  %shift = trunc i32 %bit to i8
  %one = shl i8 1, %shift
  %rest = xor i8 %one, -1
  %without = and i8 %eight, %rest
  store i8 %without, ptr %place, align 1
  %moved = call i32 @sched_setaffinity(i32 0, i64 128, ptr %others)
  %back = call i32 @sched_setaffinity(i32 0, i64 128, ptr %allowed)
  br label %end
end:
  ret void
}
