;;; Plans and frames are read and filled by a reader.
;;; A reader goes through a plan and fills a frame. Its fields: the next word of the plan, where the
;;; next argument word goes, the sizes of the symbols, where the next range goes, where the next held
;;; object goes, the first range, and whether the arithmetic of sizes has overflown.

%Reader = type { ptr, ptr, ptr, ptr, ptr, ptr, i64 }

; The next word of the plan.
define i64 @next(ptr %r) alwaysinline nounwind {
  %at = load ptr, ptr %r
  %word = load i64, ptr %at
  %following = getelementptr i64, ptr %at, i64 1
  store ptr %following, ptr %r
  ret i64 %word
}

; Appends a word to one of the reader's three lists: 1 arguments, 3 ranges, 4 held objects.
define void @append(ptr %list, i64 %word) alwaysinline nounwind {
  %at = load ptr, ptr %list
  store i64 %word, ptr %at
  %following = getelementptr i64, ptr %at, i64 1
  store ptr %following, ptr %list
  ret void
}

define void @pass(ptr %r, i64 %word) alwaysinline nounwind {
  %list = getelementptr %Reader, ptr %r, i64 0, i32 1
  call void @append(ptr %list, i64 %word)
  ret void
}

define void @hold(ptr %r, ptr %object) alwaysinline nounwind {
  %list = getelementptr %Reader, ptr %r, i64 0, i32 4
  %word = ptrtoint ptr %object to i64
  call void @append(ptr %list, i64 %word)
  ret void
}

define void @occupy(ptr %r, i64 %start, i64 %bytes) alwaysinline nounwind {
  %list = getelementptr %Reader, ptr %r, i64 0, i32 3
  %end = add i64 %start, %bytes
  call void @append(ptr %list, i64 %start)
  call void @append(ptr %list, i64 %end)
  ret void
}

; Whether a size is the one wanted; a symbol that has none yet is bound to it.
define i1 @fits(ptr %r, i64 %code, i64 %size) alwaysinline nounwind {
entry:
  %static = icmp sge i64 %code, 0
  br i1 %static, label %compare, label %symbol
symbol:
  %field = getelementptr %Reader, ptr %r, i64 0, i32 2
  %sizes = load ptr, ptr %field
  %number = xor i64 %code, -1
  %place = getelementptr i64, ptr %sizes, i64 %number
  %known = load i64, ptr %place
  %free = icmp slt i64 %known, 0
  br i1 %free, label %bind, label %compare
bind:
  store i64 %size, ptr %place
  ret i1 true
compare:
  %wanted = phi i64 [ %code, %entry ], [ %known, %symbol ]
  %same = icmp eq i64 %wanted, %size
  ret i1 %same
}

define i64 @word(ptr %base, i64 %number) alwaysinline nounwind {
  %at = getelementptr i64, ptr %base, i64 %number
  %word = load i64, ptr %at
  ret i64 %word
}
