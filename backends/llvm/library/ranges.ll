;;; The memory of the buffers of a call, as pairs of the address of the first byte and the one after
;;; the last.

; The first of so many ranges that has bytes in common with another one; -1 without any.
define i64 @overlapping(ptr %ranges, i64 %count, i64 %begin, i64 %end) nounwind {
entry:
  br label %look
look:
  %n = phi i64 [ 0, %entry ], [ %n1, %next ]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %compare, label %none
compare:
  %at = getelementptr { i64, i64 }, ptr %ranges, i64 %n
  %end_at = getelementptr { i64, i64 }, ptr %ranges, i64 %n, i32 1
  %low = load i64, ptr %at
  %high = load i64, ptr %end_at
  %above = call i64 @llvm.umax.i64(i64 %low, i64 %begin)
  %below = call i64 @llvm.umin.i64(i64 %high, i64 %end)
  %apart = icmp uge i64 %above, %below
  br i1 %apart, label %next, label %found
next:
  %n1 = add i64 %n, 1
  br label %look
found:
  ret i64 %n
none:
  ret i64 -1
}

declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
