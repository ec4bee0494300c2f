;;; Results: arrays that are made, or taken from the caller.

%Reader = type { ptr, ptr, ptr, ptr, ptr, ptr, i64 }

; Python, NumPy and LLVM
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare i32 @PyArray_SetBaseObject(ptr, ptr)
declare ptr @PyArray_Resize(ptr, ptr, i32, i32)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)

; Made by code.py
declare ptr @array_type()
declare ptr @byte_type()
declare i64 @data_of(ptr)
declare ptr @frame_arena(ptr)
declare i64 @in_arena()
declare i64 @large_result()
declare i64 @largest_arena()
declare i64 @line()
declare ptr @none()
declare i64 @polynomial()
declare ptr @shape_of(ptr)
declare i32 @writable()

; From reader.ll
declare i64 @next(ptr)
declare void @occupy(ptr, i64, i64)
declare void @pass(ptr, i64)
declare i64 @word(ptr, i64)

; From arguments.ll
declare i1 @is_plain(ptr, i64, i64, i32)

; The value of the code of a size. What overflows is noted in the reader.
define i64 @size(ptr %r) nounwind {
entry:
  %code = call i64 @next(ptr %r)
  %static = icmp sge i64 %code, 0
  br i1 %static, label %known, label %symbolic
known:
  ret i64 %code
symbolic:
  %sizes_at = getelementptr %Reader, ptr %r, i64 0, i32 2
  %sizes = load ptr, ptr %sizes_at
  %flag_at = getelementptr %Reader, ptr %r, i64 0, i32 6
  %mark = call i64 @polynomial()
  %several = icmp eq i64 %code, %mark
  br i1 %several, label %polynomial, label %symbol
symbol:
  %number = xor i64 %code, -1
  %at = getelementptr i64, ptr %sizes, i64 %number
  %size = load i64, ptr %at
  ret i64 %size
polynomial:
  %terms = call i64 @next(ptr %r)
  br label %head
head:
  %term = phi i64 [ 0, %polynomial ], [ %term1, %add ]
  %total = phi i64 [ 0, %polynomial ], [ %total1, %add ]
  %more = icmp slt i64 %term, %terms
  br i1 %more, label %begin, label %done
begin:
  %coefficient = call i64 @next(ptr %r)
  %factors = call i64 @next(ptr %r)
  br label %multiply
multiply:
  %factor = phi i64 [ 0, %begin ], [ %factor1, %scale ]
  %product = phi i64 [ %coefficient, %begin ], [ %product1, %scale ]
  %another = icmp slt i64 %factor, %factors
  br i1 %another, label %by, label %add
by:
  %which = call i64 @next(ptr %r)
  %divides = icmp slt i64 %which, 0
  br i1 %divides, label %quotient, label %plain
plain:
  %which_at = getelementptr i64, ptr %sizes, i64 %which
  %own = load i64, ptr %which_at
  br label %scale
quotient:
  %dividend = call i64 @size(ptr %r)
  %divisor = sub i64 0, %which
  %whole = udiv i64 %dividend, %divisor
  br label %scale
scale:
  %value = phi i64 [ %own, %plain ], [ %whole, %quotient ]
  %scaled = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %product, i64 %value)
  %product1 = extractvalue { i64, i1 } %scaled, 0
  %over = extractvalue { i64, i1 } %scaled, 1
  call void @note(ptr %flag_at, i1 %over)
  %factor1 = add i64 %factor, 1
  br label %multiply
add:
  %sum = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %total, i64 %product)
  %total1 = extractvalue { i64, i1 } %sum, 0
  %beyond = extractvalue { i64, i1 } %sum, 1
  call void @note(ptr %flag_at, i1 %beyond)
  %term1 = add i64 %term, 1
  br label %head
done:
  ret i64 %total
}

define void @note(ptr %flag, i1 %bad) alwaysinline nounwind {
  %old = load i64, ptr %flag
  %word = zext i1 %bad to i64
  %new = or i64 %old, %word
  store i64 %new, ptr %flag
  ret void
}

; Whether sizes agree, and the arena has a size that there can be.
define i1 @sizes_are_right(ptr %r) nounwind {
entry:
  %facts = call i64 @next(ptr %r)
  br label %head
head:
  %fact = phi i64 [ 0, %entry ], [ %fact1, %body ]
  %wrong = phi i64 [ 0, %entry ], [ %wrong1, %body ]
  %more = icmp slt i64 %fact, %facts
  br i1 %more, label %body, label %arena
body:
  %difference = call i64 @size(ptr %r)
  %wrong1 = or i64 %wrong, %difference
  %fact1 = add i64 %fact, 1
  br label %head
arena:
  %bytes = call i64 @size(ptr %r)
  %flag_at = getelementptr %Reader, ptr %r, i64 0, i32 6
  %over = load i64, ptr %flag_at
  %trouble = or i64 %wrong, %over
  %equal = icmp eq i64 %trouble, 0
  %largest = call i64 @largest_arena()
  %fits = icmp ule i64 %bytes, %largest
  %right = and i1 %equal, %fits
  ret i1 %right
}

; Whether the bytes from %start to %end are of no other buffer.
define i1 @is_apart(ptr %r, i64 %start, i64 %end) nounwind {
entry:
  %first_at = getelementptr %Reader, ptr %r, i64 0, i32 5
  %last_at = getelementptr %Reader, ptr %r, i64 0, i32 3
  %first = load ptr, ptr %first_at
  %last = load ptr, ptr %last_at
  br label %head
head:
  %range = phi ptr [ %first, %entry ], [ %following, %body ]
  %more = icmp ult ptr %range, %last
  br i1 %more, label %body, label %yes
body:
  %other_start = load i64, ptr %range
  %other_end = call i64 @word(ptr %range, i64 1)
  %following = getelementptr i64, ptr %range, i64 2
  %before = icmp ult i64 %start, %other_end
  %after = icmp ult i64 %other_start, %end
  %overlap = and i1 %before, %after
  br i1 %overlap, label %no, label %head
yes:
  ret i1 true
no:
  ret i1 false
}

; A new array at the beginning of a line, part of one of bytes; null where no memory is left. It takes
; over a reference to its dtype.
define ptr @aligned_array(ptr %descr, i32 %rank, ptr %shape, i64 %bytes) nounwind {
entry:
  %array_type = call ptr @array_type()
  %byte_type = call ptr @byte_type()
  %line = call i64 @line()
  %size = alloca i64
  %more = add i64 %bytes, %line
  store i64 %more, ptr %size
  call void @Py_IncRef(ptr %byte_type)
  %raw = call ptr @PyArray_NewFromDescr(ptr %array_type, ptr %byte_type, i32 1, ptr %size,
                                        ptr null, ptr null, i32 0, ptr null)
  %none = icmp eq ptr %raw, null
  br i1 %none, label %failed, label %view
view:
  %data = call i64 @data_of(ptr %raw)
  %back = sub i64 0, %line
  %last = sub i64 %line, 1
  %after = add i64 %data, %last
  %start = and i64 %after, %back
  %place = inttoptr i64 %start to ptr
  %flags = call i32 @writable()
  %array = call ptr @PyArray_NewFromDescr(ptr %array_type, ptr %descr, i32 %rank, ptr %shape,
                                          ptr null, ptr %place, i32 %flags, ptr null)
  %missing = icmp eq ptr %array, null
  br i1 %missing, label %alone, label %based
based:
  ; It takes over the reference to the bytes.
  %status = call i32 @PyArray_SetBaseObject(ptr %array, ptr %raw)
  ret ptr %array
alone:
  call void @Py_DecRef(ptr %raw)
  ret ptr null
failed:
  call void @Py_DecRef(ptr %descr)
  ret ptr null
}

; A new array of some bytes, a large one at the beginning of a line unless it is resized; null where
; no memory is left.
define ptr @new_array(ptr %descr, i64 %rank, ptr %shape, i64 %bytes, i1 %is_resized) nounwind {
entry:
  %rank32 = trunc i64 %rank to i32
  ; The array takes over a reference to its dtype.
  call void @Py_IncRef(ptr %descr)
  %most = call i64 @large_result()
  %lengthy = icmp uge i64 %bytes, %most
  %fixed = xor i1 %is_resized, true
  %large = and i1 %lengthy, %fixed
  br i1 %large, label %in_lines, label %anywhere
in_lines:
  %in = call ptr @aligned_array(ptr %descr, i32 %rank32, ptr %shape, i64 %bytes)
  ret ptr %in
anywhere:
  %array_type = call ptr @array_type()
  %at_any = call ptr @PyArray_NewFromDescr(ptr %array_type, ptr %descr, i32 %rank32, ptr %shape,
                                           ptr null, ptr null, i32 0, ptr null)
  ret ptr %at_any
}

; A new reference to an array for a result: the one given, or a new one. Null where the given one
; cannot be used, or no memory is left. None stands for a result in the arena.
define ptr @result(ptr %r, ptr %given, ptr %shape) nounwind {
entry:
  %descr_word = call i64 @next(ptr %r)
  %dtype = call i64 @next(ptr %r)
  %item = call i64 @next(ptr %r)
  %rank = call i64 @next(ptr %r)
  %placement = call i64 @next(ptr %r)
  %mark = call i64 @in_arena()
  %later = icmp eq i64 %placement, %mark
  %arguments_at = getelementptr %Reader, ptr %r, i64 0, i32 1
  %data_place = load ptr, ptr %arguments_at
  call void @pass(ptr %r, i64 0)
  br label %head
head:
  %axis = phi i64 [ 0, %entry ], [ %axis1, %following ]
  %bytes = phi i64 [ %item, %entry ], [ %bytes1, %following ]
  %more = icmp slt i64 %axis, %rank
  br i1 %more, label %dimension, label %sized
dimension:
  %size = call i64 @size(ptr %r)
  %passed = call i64 @next(ptr %r)
  %at = getelementptr i64, ptr %shape, i64 %axis
  store i64 %size, ptr %at
  %some = icmp sgt i64 %size, 0
  %usable = or i1 %some, %later
  br i1 %usable, label %fine, label %no
fine:
  %quiet = icmp eq i64 %passed, 0
  br i1 %quiet, label %following, label %put
put:
  call void @pass(ptr %r, i64 %size)
  br label %following
following:
  %bytes1 = mul i64 %bytes, %size
  %axis1 = add i64 %axis, 1
  br label %head
sized:
  br i1 %later, label %nothing_yet, label %exact
nothing_yet:
  %placeholder = call ptr @none()
  call void @Py_IncRef(ptr %placeholder)
  ret ptr %placeholder
exact:
  %flag_at = getelementptr %Reader, ptr %r, i64 0, i32 6
  %over = load i64, ptr %flag_at
  %right = icmp eq i64 %over, 0
  br i1 %right, label %choose, label %no
choose:
  %new = icmp eq ptr %given, null
  br i1 %new, label %make, label %look
make:
  %descr = inttoptr i64 %descr_word to ptr
  %is_resized = icmp ne i64 %placement, 0
  %made = call ptr @new_array(ptr %descr, i64 %rank, ptr %shape, i64 %bytes, i1 %is_resized)
  %none = icmp eq ptr %made, null
  br i1 %none, label %no, label %done
look:
  %writable = call i32 @writable()
  %plain = call i1 @is_plain(ptr %given, i64 %dtype, i64 %rank, i32 %writable)
  br i1 %plain, label %compare, label %no
compare:
  %has = call ptr @shape_of(ptr %given)
  br label %each
each:
  %n = phi i64 [ 0, %compare ], [ %n1, %same ]
  %left = icmp slt i64 %n, %rank
  br i1 %left, label %one, label %place
one:
  %wanted_at = getelementptr i64, ptr %shape, i64 %n
  %has_at = getelementptr i64, ptr %has, i64 %n
  %wanted = load i64, ptr %wanted_at
  %found = load i64, ptr %has_at
  %equal = icmp eq i64 %wanted, %found
  br i1 %equal, label %same, label %no
same:
  %n1 = add i64 %n, 1
  br label %each
place:
  %start = call i64 @data_of(ptr %given)
  %end = add i64 %start, %bytes
  %apart = call i1 @is_apart(ptr %r, i64 %start, i64 %end)
  br i1 %apart, label %take, label %no
take:
  call void @Py_IncRef(ptr %given)
  br label %done
done:
  %array = phi ptr [ %made, %make ], [ %given, %take ]
  %data = call i64 @data_of(ptr %array)
  store i64 %data, ptr %data_place
  call void @occupy(ptr %r, i64 %data, i64 %bytes)
  ret ptr %array
no:
  ret ptr null
}

; Gives results the sizes that the program computed, and the rest of their memory back; those in the
; arena are copied. Whether there was memory for it.
define i1 @finish(ptr %r, ptr %results, ptr %shape, ptr %frame) nounwind {
entry:
  %count = call i64 @next(ptr %r)
  %mark = call i64 @in_arena()
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %n1, %done ]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %begin, label %yes
begin:
  %number = call i64 @next(ptr %r)
  %placement = call i64 @next(ptr %r)
  %descr_word = call i64 @next(ptr %r)
  %item = call i64 @next(ptr %r)
  %rank = call i64 @next(ptr %r)
  %place = getelementptr ptr, ptr %results, i64 %number
  %n1 = add i64 %n, 1
  br label %each
each:
  %axis = phi i64 [ 0, %begin ], [ %axis1, %dimension ]
  %bytes = phi i64 [ %item, %begin ], [ %bytes1, %dimension ]
  %left = icmp slt i64 %axis, %rank
  br i1 %left, label %dimension, label %sized
dimension:
  %size = call i64 @size(ptr %r)
  %at = getelementptr i64, ptr %shape, i64 %axis
  store i64 %size, ptr %at
  %bytes1 = mul i64 %bytes, %size
  %axis1 = add i64 %axis, 1
  br label %each
sized:
  %is_there = icmp eq i64 %placement, %mark
  br i1 %is_there, label %copy, label %cut
cut:
  %cut_right = call i1 @cut(ptr %place, i64 %rank, ptr %shape)
  br label %done
copy:
  %offset = call i64 @size(ptr %r)
  %arena = call ptr @frame_arena(ptr %frame)
  %from = getelementptr i8, ptr %arena, i64 %offset
  %descr = inttoptr i64 %descr_word to ptr
  %copied = call i1 @copy(ptr %place, ptr %descr, i64 %rank, ptr %shape, i64 %bytes, ptr %from)
  br label %done
done:
  %right = phi i1 [ %cut_right, %cut ], [ %copied, %copy ]
  br i1 %right, label %head, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

define i1 @cut(ptr %place, i64 %rank, ptr %shape) nounwind {
  %dims = alloca { ptr, i32 }, align 8
  %array = load ptr, ptr %place
  %rank32 = trunc i64 %rank to i32
  %rank_at = getelementptr { ptr, i32 }, ptr %dims, i64 0, i32 1
  store ptr %shape, ptr %dims
  store i32 %rank32, ptr %rank_at
  ; Nobody else has a reference to the array.
  %none = call ptr @PyArray_Resize(ptr %array, ptr %dims, i32 0, i32 0)
  %failed = icmp eq ptr %none, null
  br i1 %failed, label %no, label %yes
yes:
  call void @Py_DecRef(ptr %none)
  ret i1 true
no:
  ret i1 false
}

define i1 @copy(ptr %place, ptr %descr, i64 %rank, ptr %shape, i64 %bytes, ptr %from) nounwind {
  %array = call ptr @new_array(ptr %descr, i64 %rank, ptr %shape, i64 %bytes, i1 false)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %no, label %yes
yes:
  %data = call i64 @data_of(ptr %array)
  %to = inttoptr i64 %data to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  %placeholder = load ptr, ptr %place
  store ptr %array, ptr %place
  call void @Py_DecRef(ptr %placeholder)
  ret i1 true
no:
  ret i1 false
}
