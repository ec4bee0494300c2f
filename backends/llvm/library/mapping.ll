;;; Weights in a file, mapped into memory that processes share. The numbers are those of Linux and
;;; macOS.

declare i32 @open(ptr, i32, ...)
declare i64 @lseek(i32, i64, i32)
declare i32 @close(i32)
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)

; Maps a file of so many bytes; null where it cannot be opened, or has another size.
define ptr @map_file(ptr %path, i64 %bytes) nounwind {
entry:
  %file = call i32 (ptr, i32, ...) @open(ptr %path, i32 0)
  %opened = icmp sge i32 %file, 0
  br i1 %opened, label %measure, label %none
measure:
  %size = call i64 @lseek(i32 %file, i64 0, i32 2)
  %right = icmp eq i64 %size, %bytes
  br i1 %right, label %map, label %close
map:
  ; Read only, private.
  %mapped = call ptr @mmap(ptr null, i64 %bytes, i32 1, i32 2, i32 %file, i64 0)
  %address = ptrtoint ptr %mapped to i64
  %failed = icmp eq i64 %address, -1
  %memory = select i1 %failed, ptr null, ptr %mapped
  br label %close
close:
  %result = phi ptr [ null, %measure ], [ %memory, %map ]
  %closed = call i32 @close(i32 %file)
  ret ptr %result
none:
  ret ptr null
}

define void @unmap_file(ptr %memory, i64 %bytes) nounwind {
  %done = call i32 @munmap(ptr %memory, i64 %bytes)
  ret void
}
