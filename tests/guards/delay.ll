;;; A delay before an atomic access, so that other threads get between it and the one before.

declare i64 @llvm.readcyclecounter()
declare i32 @usleep(i32)
declare i32 @sched_yield()

; Lets other threads go first, now and then, for a while.
define void @delay() noinline nounwind {
entry:
  %clock = call i64 @llvm.readcyclecounter()
  %mixed = mul i64 %clock, -7046029254386353131
  %high = lshr i64 %mixed, 58
  %rarely = icmp eq i64 %high, 0
  %often = icmp ult i64 %high, 16
  br i1 %rarely, label %wait, label %others
wait:
  %waited = call i32 @usleep(i32 30)
  ret void
others:
  br i1 %often, label %yield, label %end
yield:
  %yielded = call i32 @sched_yield()
  ret void
end:
  ret void
}
