;;; Memory against unmapped pages.
;;;
;;; A buffer has pages of its own, between two that cannot be accessed, and before those one that
;;; says what it is:
;;;
;;;     | bytes, size of the region | guard | buffer, rest | guard |     or
;;;     | bytes, size of the region | guard | rest, buffer | guard |
;;;
;;; Where buffers end at a guard, an alignment may leave some bytes between the two. All bytes of
;;; these pages are 255 at first, which is NaN or -1; those around the buffer must be so at the end.
;;; Buffers of more than 16 MiB may never be written to, and are 0 at first.

@at_end   = global i64 1
@damaged  = global i64 0
@buffers  = global i64 0

declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @mprotect(ptr, i64, i32)
declare i32 @munmap(ptr, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

; A buffer of some bytes at a multiple of `alignment`, or null.
define ptr @guarded_allocate(i64 %alignment, i64 %bytes) nounwind {
entry:
  %possible = icmp ult i64 %bytes, 70368744177664
  br i1 %possible, label %map, label %no
map:
  %some = call i64 @llvm.umax.i64(i64 %bytes, i64 1)
  %more = add i64 %some, 4095
  %data = and i64 %more, -4096
  %whole = add i64 %data, 12288
  ; private, anonymous, without a reserve
  %region = call ptr @mmap(ptr null, i64 %whole, i32 0, i32 16418, i32 -1, i64 0)
  %address = ptrtoint ptr %region to i64
  %failed = icmp eq i64 %address, -1
  br i1 %failed, label %no, label %open
open:
  %first = getelementptr i8, ptr %region, i64 8192
  %a = call i32 @mprotect(ptr %region, i64 4096, i32 3)
  %b = call i32 @mprotect(ptr %first, i64 %data, i32 3)
  %both = or i32 %a, %b
  %opened = icmp eq i32 %both, 0
  br i1 %opened, label %fill, label %close
fill:
  %small = call i1 @is_filled(i64 %whole)
  %filled = select i1 %small, i64 %data, i64 0
  call void @llvm.memset.p0.i64(ptr %first, i8 -1, i64 %filled, i1 false)
  %size_at = getelementptr i64, ptr %region, i64 1
  store i64 %bytes, ptr %region
  store i64 %whole, ptr %size_at
  %number = atomicrmw add ptr @buffers, i64 1 monotonic
  %start = ptrtoint ptr %first to i64
  %end = add i64 %start, %data
  %last = sub i64 %end, %some
  %back = sub i64 0, %alignment
  %aligned = and i64 %last, %back
  %is_at_end = load i64, ptr @at_end
  %choice = icmp ne i64 %is_at_end, 0
  %place = select i1 %choice, i64 %aligned, i64 %start
  %buffer = inttoptr i64 %place to ptr
  ret ptr %buffer
close:
  %closed = call i32 @munmap(ptr %region, i64 %whole)
  br label %no
no:
  ret ptr null
}

; Whether the bytes of a region of this size are 255 at first.
define i1 @is_filled(i64 %whole) nounwind {
  %small = icmp ule i64 %whole, 16777216
  ret i1 %small
}

; The region of a buffer.
define ptr @region_of(ptr %buffer) nounwind {
  %address = ptrtoint ptr %buffer to i64
  %page = and i64 %address, -4096
  %start = sub i64 %page, 8192
  %region = inttoptr i64 %start to ptr
  ret ptr %region
}

; Counts a buffer as damaged if a byte between two addresses is not 255.
define void @check(i64 %from, i64 %to) nounwind {
entry:
  br label %head
head:
  %at = phi i64 [ %from, %entry ], [ %following, %same ]
  %left = icmp ult i64 %at, %to
  br i1 %left, label %look, label %end
look:
  %place = inttoptr i64 %at to ptr
  %byte = load i8, ptr %place
  %kept = icmp eq i8 %byte, -1
  br i1 %kept, label %same, label %damage
same:
  %following = add i64 %at, 1
  br label %head
damage:
  %before = atomicrmw add ptr @damaged, i64 1 monotonic
  br label %end
end:
  ret void
}

define void @guarded_free(ptr %buffer) nounwind {
entry:
  %none = icmp eq ptr %buffer, null
  br i1 %none, label %end, label %some
some:
  %region = call ptr @region_of(ptr %buffer)
  %size_at = getelementptr i64, ptr %region, i64 1
  %bytes = load i64, ptr %region
  %whole = load i64, ptr %size_at
  %start = ptrtoint ptr %region to i64
  %checked = call i1 @is_filled(i64 %whole)
  br i1 %checked, label %look, label %unmap
look:
  %first = add i64 %start, 8192
  %beyond = add i64 %start, %whole
  %last = sub i64 %beyond, 4096
  %address = ptrtoint ptr %buffer to i64
  %after = add i64 %address, %bytes
  call void @check(i64 %first, i64 %address)
  call void @check(i64 %after, i64 %last)
  br label %unmap
unmap:
  %closed = call i32 @munmap(ptr %region, i64 %whole)
  %number = atomicrmw sub ptr @buffers, i64 1 monotonic
  br label %end
end:
  ret void
}

; The functions of a handler of NumPy's memory, whose arrays are aligned to their elements.

define ptr @numpy_malloc(ptr %context, i64 %bytes) nounwind {
  %buffer = call ptr @guarded_allocate(i64 1, i64 %bytes)
  ret ptr %buffer
}

define ptr @numpy_calloc(ptr %context, i64 %count, i64 %size) nounwind {
entry:
  %product = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue { i64, i1 } %product, 0
  %over = extractvalue { i64, i1 } %product, 1
  br i1 %over, label %no, label %yes
yes:
  %buffer = call ptr @guarded_allocate(i64 1, i64 %bytes)
  %none = icmp eq ptr %buffer, null
  br i1 %none, label %no, label %clear
clear:
  %whole = add i64 %bytes, 16384
  %filled = call i1 @is_filled(i64 %whole)
  %written = select i1 %filled, i64 %bytes, i64 0
  call void @llvm.memset.p0.i64(ptr %buffer, i8 0, i64 %written, i1 false)
  ret ptr %buffer
no:
  ret ptr null
}

define ptr @numpy_realloc(ptr %context, ptr %buffer, i64 %bytes) nounwind {
entry:
  %new = call ptr @guarded_allocate(i64 1, i64 %bytes)
  %none = icmp eq ptr %new, null
  %first = icmp eq ptr %buffer, null
  %done = or i1 %none, %first
  br i1 %done, label %end, label %move
move:
  %region = call ptr @region_of(ptr %buffer)
  %old = load i64, ptr %region
  %kept = call i64 @llvm.umin.i64(i64 %old, i64 %bytes)
  call void @llvm.memmove.p0.p0.i64(ptr %new, ptr %buffer, i64 %kept, i1 false)
  call void @guarded_free(ptr %buffer)
  br label %end
end:
  ret ptr %new
}

define void @numpy_free(ptr %context, ptr %buffer, i64 %bytes) nounwind {
  call void @guarded_free(ptr %buffer)
  ret void
}
