;;; The frames of a program form a list that only grows. A call claims a free one, and gives it back.

; Made by boundary/code.py and library/code.py
declare ptr @frame_busy(ptr)
declare ptr @frame_next(ptr)

; A free frame of the list, which is the caller's from now on; null where there is none.
define ptr @stepwell_frame(ptr %head) nounwind {
entry:
  br label %look
look:
  %link = phi ptr [ %head, %entry ], [ %next, %busy ]
  %frame = load atomic ptr, ptr %link acquire, align 8
  %none = icmp eq ptr %frame, null
  br i1 %none, label %done, label %claim
claim:
  %word = call ptr @frame_busy(ptr %frame)
  %swap = cmpxchg ptr %word, i64 0, i64 1 acquire monotonic
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %done, label %busy
busy:
  %next = call ptr @frame_next(ptr %frame)
  br label %look
done:
  ret ptr %frame
}

define void @give_back(ptr %frame) alwaysinline nounwind {
  %word = call ptr @frame_busy(ptr %frame)
  store atomic i64 0, ptr %word release, align 8
  ret void
}
