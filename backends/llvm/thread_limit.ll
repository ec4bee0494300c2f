;;; The number of threads of a saved program: what its code states, or fewer.
;;;
;;; `stepwell_most_threads` is written once, when the program is loaded.

@stepwell_most_threads = global i64 1, align 8

declare void @stepwell_parallel_tiles(ptr, ptr, i64, i64, i64)

define void @limited_tiles(ptr %body, ptr %context, i64 %count, i64 %stated, i64 %order) nounwind {
  %most = load i64, ptr @stepwell_most_threads, align 8
  %fewer = icmp ult i64 %most, %stated
  %threads = select i1 %fewer, i64 %most, i64 %stated
  call void @stepwell_parallel_tiles(ptr %body, ptr %context, i64 %count, i64 %threads, i64 %order)
  ret void
}
