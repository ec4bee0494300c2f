;;; A call: frames, and what an executable does when it is called.

%Reader = type { ptr, ptr, ptr, ptr, ptr, ptr, i64 }

; Python, NumPy and LLVM
declare void @PyErr_Clear()
declare i32 @PyErr_ExceptionMatches(ptr)
declare ptr @PyErr_NoMemory()
declare ptr @PyErr_Occurred()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyEval_SaveThread()
declare ptr @PyLong_FromLongLong(i64)
declare void @PyMem_Free(ptr)
declare ptr @PyMem_Malloc(i64)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyTuple_Size(ptr)
declare void @Py_DecRef(ptr)

; Made by code.py
declare i32 @arena_too_small()
declare ptr @exception_type()
declare ptr @frame_arguments(ptr)
declare ptr @name_out()
declare ptr @none()
declare ptr @plan_code(ptr)
declare i64 @plan_computed(ptr)
declare ptr @plan_fail(ptr)
declare ptr @plan_frames(ptr)
declare i64 @plan_held(ptr)
declare i64 @plan_inputs(ptr)
declare ptr @plan_of(ptr)
declare i64 @plan_outputs(ptr)
declare i64 @plan_ranges(ptr)
declare ptr @plan_records(ptr)
declare i64 @plan_results(ptr)
declare i64 @plan_shape(ptr)
declare i64 @plan_sizes(ptr)
declare ptr @plan_slow(ptr)
declare i64 @plan_symbols(ptr)

; From frames.ll
declare void @give_back(ptr)
declare ptr @stepwell_frame(ptr)

; From reader.ll
declare i64 @next(ptr)
declare void @pass(ptr, i64)

; From arguments.ll
declare i1 @is_tuple(ptr)
declare i1 @take_csr(ptr, ptr)
declare i1 @take_dense(ptr, ptr)

; From results.ll
declare i1 @finish(ptr, ptr, ptr, ptr)
declare ptr @result(ptr, ptr, ptr)
declare i1 @sizes_are_right(ptr)

; Lets go of the objects of a list.
define void @release(ptr %first, ptr %last) nounwind {
entry:
  br label %head
head:
  %at = phi ptr [ %first, %entry ], [ %following, %body ]
  %more = icmp ult ptr %at, %last
  br i1 %more, label %body, label %done
body:
  %object = load ptr, ptr %at
  call void @Py_DecRef(ptr %object)
  %following = getelementptr ptr, ptr %at, i64 1
  br label %head
done:
  ret void
}

; Calls the function that does in Python what could not be done here, with the same arguments.
define ptr @slowly(ptr %self, ptr %args, i64 %count, ptr %names, ptr %plan) nounwind {
entry:
  %function = call ptr @plan_slow(ptr %plan)
  %named = icmp ne ptr %names, null
  br i1 %named, label %with_names, label %allocate
with_names:
  %keywords = call i64 @PyTuple_Size(ptr %names)
  br label %allocate
allocate:
  %extra = phi i64 [ 0, %entry ], [ %keywords, %with_names ]
  %all = add i64 %count, %extra
  %positional = add i64 %count, 1
  %slots = add i64 %all, 1
  %bytes = mul i64 %slots, 8
  %array = call ptr @PyMem_Malloc(i64 %bytes)
  %none = icmp eq ptr %array, null
  br i1 %none, label %no_memory, label %copy
no_memory:
  %nothing = call ptr @PyErr_NoMemory()
  ret ptr null
copy:
  store ptr %self, ptr %array
  br label %head
head:
  %n = phi i64 [ 0, %copy ], [ %n1, %body ]
  %more = icmp slt i64 %n, %all
  br i1 %more, label %body, label %run
body:
  %from = getelementptr ptr, ptr %args, i64 %n
  %n1 = add i64 %n, 1
  %to = getelementptr ptr, ptr %array, i64 %n1
  %object = load ptr, ptr %from
  store ptr %object, ptr %to
  br label %head
run:
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %array, i64 %positional, ptr %names)
  call void @PyMem_Free(ptr %array)
  ret ptr %result
}

; Calls the function that raises what the program failed with.
define ptr @fail(ptr %self, ptr %plan, i32 %status, ptr %frame) nounwind {
entry:
  %args = alloca [3 x ptr], align 8
  %function = call ptr @plan_fail(ptr %plan)
  %status_at = getelementptr ptr, ptr %args, i64 1
  %frame_at = getelementptr ptr, ptr %args, i64 2
  %status64 = sext i32 %status to i64
  %frame64 = ptrtoint ptr %frame to i64
  store ptr %self, ptr %args
  %status_object = call ptr @PyLong_FromLongLong(i64 %status64)
  %a = icmp eq ptr %status_object, null
  br i1 %a, label %no, label %more
more:
  %frame_object = call ptr @PyLong_FromLongLong(i64 %frame64)
  %b = icmp eq ptr %frame_object, null
  br i1 %b, label %drop, label %run
run:
  store ptr %status_object, ptr %status_at
  store ptr %frame_object, ptr %frame_at
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 3, ptr null)
  call void @Py_DecRef(ptr %frame_object)
  br label %drop
drop:
  %raised = phi ptr [ null, %more ], [ %result, %run ]
  call void @Py_DecRef(ptr %status_object)
  ret ptr %raised
no:
  ret ptr null
}

; A reader that stands at the first record, with no symbol bound yet.
define void @open(ptr %r, ptr %plan, ptr %frame) nounwind {
entry:
  %records = call ptr @plan_records(ptr %plan)
  %arguments = call ptr @frame_arguments(ptr %frame)
  %sizes_word = call i64 @plan_sizes(ptr %plan)
  %ranges_word = call i64 @plan_ranges(ptr %plan)
  %held_word = call i64 @plan_held(ptr %plan)
  %sizes = getelementptr i64, ptr %frame, i64 %sizes_word
  %ranges = getelementptr i64, ptr %frame, i64 %ranges_word
  %held = getelementptr i64, ptr %frame, i64 %held_word
  %f1 = getelementptr %Reader, ptr %r, i64 0, i32 1
  %f2 = getelementptr %Reader, ptr %r, i64 0, i32 2
  %f3 = getelementptr %Reader, ptr %r, i64 0, i32 3
  %f4 = getelementptr %Reader, ptr %r, i64 0, i32 4
  %f5 = getelementptr %Reader, ptr %r, i64 0, i32 5
  %f6 = getelementptr %Reader, ptr %r, i64 0, i32 6
  store ptr %records, ptr %r
  store ptr %arguments, ptr %f1
  store ptr %sizes, ptr %f2
  store ptr %ranges, ptr %f3
  store ptr %held, ptr %f4
  store ptr %ranges, ptr %f5
  store i64 0, ptr %f6
  %symbols = call i64 @plan_symbols(ptr %plan)
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %n1, %body ]
  %more = icmp slt i64 %n, %symbols
  br i1 %more, label %body, label %done
body:
  %at = getelementptr i64, ptr %sizes, i64 %n
  store i64 -1, ptr %at
  %n1 = add i64 %n, 1
  br label %head
done:
  ret void
}

define i1 @take_inputs(ptr %r, ptr %args, i64 %inputs) nounwind {
entry:
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %n1, %taken ]
  %more = icmp slt i64 %n, %inputs
  br i1 %more, label %body, label %sizes
body:
  %at = getelementptr ptr, ptr %args, i64 %n
  %object = load ptr, ptr %at
  %n1 = add i64 %n, 1
  %kind = call i64 @next(ptr %r)
  %is_dense = icmp eq i64 %kind, 0
  br i1 %is_dense, label %dense, label %csr
dense:
  %a = call i1 @take_dense(ptr %r, ptr %object)
  br i1 %a, label %taken, label %no
csr:
  %b = call i1 @take_csr(ptr %r, ptr %object)
  br i1 %b, label %taken, label %no
taken:
  br label %head
sizes:
  %right = call i1 @sizes_are_right(ptr %r)
  ret i1 %right
no:
  ret i1 false
}

; The array given for result %n: of one result `out` itself, of several an item of the tuple that
; it then is. Null where none is given.
define ptr @given(ptr %out, i64 %n, i64 %outputs) nounwind {
entry:
  %nothing = icmp eq ptr %out, null
  br i1 %nothing, label %no, label %something
something:
  %one = icmp eq i64 %outputs, 1
  br i1 %one, label %found, label %item
item:
  %part = call ptr @PyTuple_GetItem(ptr %out, i64 %n)
  br label %found
found:
  %array = phi ptr [ %out, %something ], [ %part, %item ]
  %none = call ptr @none()
  %is_none = icmp eq ptr %array, %none
  %given = select i1 %is_none, ptr null, ptr %array
  ret ptr %given
no:
  ret ptr null
}

; Whether `out` is one thing for one result, a tuple of as many for several.
define i1 @is_out(ptr %out, i64 %outputs) nounwind {
entry:
  %one = icmp eq i64 %outputs, 1
  br i1 %one, label %yes, label %several
several:
  %tuple = call i1 @is_tuple(ptr %out)
  br i1 %tuple, label %count, label %no
count:
  %items = call i64 @PyTuple_Size(ptr %out)
  %right = icmp eq i64 %items, %outputs
  ret i1 %right
yes:
  ret i1 true
no:
  ret i1 false
}

; Fills the list of results and returns how many there are: fewer than wanted where one cannot be
; had.
define i64 @take_results(ptr %r, ptr %results, ptr %out, i64 %outputs,
                                  ptr %shape) nounwind {
entry:
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %n1, %keep ]
  %more = icmp slt i64 %n, %outputs
  br i1 %more, label %body, label %done
body:
  %given = call ptr @given(ptr %out, i64 %n, i64 %outputs)
  %array = call ptr @result(ptr %r, ptr %given, ptr %shape)
  %none = icmp eq ptr %array, null
  br i1 %none, label %done, label %keep
keep:
  %at = getelementptr ptr, ptr %results, i64 %n
  store ptr %array, ptr %at
  %n1 = add i64 %n, 1
  br label %head
done:
  ret i64 %n
}

; A tuple of the results, which takes over their references.
define ptr @pack(ptr %results, i64 %outputs) nounwind {
entry:
  %tuple = call ptr @PyTuple_New(i64 %outputs)
  %none = icmp eq ptr %tuple, null
  br i1 %none, label %drop, label %head
drop:
  %end = getelementptr ptr, ptr %results, i64 %outputs
  call void @release(ptr %results, ptr %end)
  ret ptr null
head:
  %n = phi i64 [ 0, %entry ], [ %n1, %body ]
  %more = icmp slt i64 %n, %outputs
  br i1 %more, label %body, label %done
body:
  %at = getelementptr ptr, ptr %results, i64 %n
  %array = load ptr, ptr %at
  %set = call i32 @PyTuple_SetItem(ptr %tuple, i64 %n, ptr %array)
  %n1 = add i64 %n, 1
  br label %head
done:
  ret ptr %tuple
}

define ptr @stepwell_call(ptr %self, ptr %args, i64 %nargsf, ptr %names) nounwind uwtable {
entry:
  %r = alloca %Reader, align 8
  %too_small = call i32 @arena_too_small()
  %plan = call ptr @plan_of(ptr %self)
  ; The highest bit says that the word before the arguments may be used.
  %count = and i64 %nargsf, 9223372036854775807
  %inputs = call i64 @plan_inputs(ptr %plan)
  %outputs = call i64 @plan_outputs(ptr %plan)
  %right_count = icmp eq i64 %count, %inputs
  br i1 %right_count, label %keywords, label %slow
keywords:
  %bare = icmp eq ptr %names, null
  br i1 %bare, label %get_frame, label %named
named:
  %keyword_count = call i64 @PyTuple_Size(ptr %names)
  %single = icmp eq i64 %keyword_count, 1
  br i1 %single, label %name, label %slow
name:
  %keyword = call ptr @PyTuple_GetItem(ptr %names, i64 0)
  %name_of_out = call ptr @name_out()
  %is_out_name = icmp eq ptr %keyword, %name_of_out
  br i1 %is_out_name, label %with_out, label %slow
with_out:
  %out_at = getelementptr ptr, ptr %args, i64 %count
  %value = load ptr, ptr %out_at
  %none = call ptr @none()
  %is_none = icmp eq ptr %value, %none
  br i1 %is_none, label %get_frame, label %some_out
some_out:
  %usable = call i1 @is_out(ptr %value, i64 %outputs)
  %computed_for_out = call i64 @plan_computed(ptr %plan)
  %all_known = icmp eq i64 %computed_for_out, 0
  %simple = and i1 %usable, %all_known
  br i1 %simple, label %get_frame, label %slow
get_frame:
  %out = phi ptr [ null, %keywords ], [ null, %with_out ], [ %value, %some_out ]
  %frames = call ptr @plan_frames(ptr %plan)
  %frame = call ptr @stepwell_frame(ptr %frames)
  %no_frame = icmp eq ptr %frame, null
  br i1 %no_frame, label %slow, label %begin
begin:
  call void @open(ptr %r, ptr %plan, ptr %frame)
  %held_word = call i64 @plan_held(ptr %plan)
  %results_word = call i64 @plan_results(ptr %plan)
  %shape_word = call i64 @plan_shape(ptr %plan)
  %held = getelementptr i64, ptr %frame, i64 %held_word
  %results = getelementptr i64, ptr %frame, i64 %results_word
  %shape = getelementptr i64, ptr %frame, i64 %shape_word
  %taken = call i1 @take_inputs(ptr %r, ptr %args, i64 %inputs)
  br i1 %taken, label %make, label %undo
make:
  %made = call i64 @take_results(ptr %r, ptr %results, ptr %out, i64 %outputs, ptr %shape)
  %all = icmp eq i64 %made, %outputs
  br i1 %all, label %ready, label %undo
ready:
  %computed_word = call i64 @plan_computed(ptr %plan)
  %computes = icmp ne i64 %computed_word, 0
  br i1 %computes, label %pass_sizes, label %run
pass_sizes:
  %computed = getelementptr i64, ptr %frame, i64 %computed_word
  %computed_at = ptrtoint ptr %computed to i64
  call void @pass(ptr %r, i64 %computed_at)
  br label %run
run:
  %code = call ptr @plan_code(ptr %plan)
  %thread = call ptr @PyEval_SaveThread()
  %status = call i32 %code(ptr %frame)
  call void @PyEval_RestoreThread(ptr %thread)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %complete, label %undo
complete:
  br i1 %computes, label %shrink, label %success
shrink:
  %fitted = call i1 @finish(ptr %r, ptr %results, ptr %shape, ptr %frame)
  br i1 %fitted, label %success, label %no_memory
no_memory:
  %lost_held_list = getelementptr %Reader, ptr %r, i64 0, i32 4
  %lost_held_end = load ptr, ptr %lost_held_list
  %lost_results_end = getelementptr ptr, ptr %results, i64 %outputs
  call void @release(ptr %results, ptr %lost_results_end)
  call void @release(ptr %held, ptr %lost_held_end)
  call void @give_back(ptr %frame)
  ret ptr null
success:
  %held_list = getelementptr %Reader, ptr %r, i64 0, i32 4
  %held_end = load ptr, ptr %held_list
  %single_result = icmp eq i64 %outputs, 1
  br i1 %single_result, label %lone, label %several
lone:
  %array = load ptr, ptr %results
  br label %finish
several:
  %tuple = call ptr @pack(ptr %results, i64 %outputs)
  br label %finish
finish:
  %answer = phi ptr [ %array, %lone ], [ %tuple, %several ]
  call void @release(ptr %held, ptr %held_end)
  call void @give_back(ptr %frame)
  ret ptr %answer
undo:
  %have = phi i64 [ 0, %begin ], [ %made, %make ], [ %outputs, %run ]
  %ended = phi i32 [ %too_small, %begin ], [ %too_small, %make ], [ %status, %run ]
  %undo_held_list = getelementptr %Reader, ptr %r, i64 0, i32 4
  %undo_held_end = load ptr, ptr %undo_held_list
  %results_end = getelementptr ptr, ptr %results, i64 %have
  call void @release(ptr %results, ptr %results_end)
  call void @release(ptr %held, ptr %undo_held_end)
  %nothing_ran = icmp eq i32 %ended, %too_small
  br i1 %nothing_ran, label %again, label %failed
failed:
  %raised = call ptr @fail(ptr %self, ptr %plan, i32 %ended, ptr %frame)
  ret ptr %raised
again:
  call void @give_back(ptr %frame)
  br label %slow
slow:
  %error = call ptr @PyErr_Occurred()
  %clean = icmp eq ptr %error, null
  br i1 %clean, label %in_python, label %look
look:
  ; What is no Exception, an interrupt, is for the caller; else Python words a better error.
  %exception = call ptr @exception_type()
  %ordinary = call i32 @PyErr_ExceptionMatches(ptr %exception)
  %interrupt = icmp eq i32 %ordinary, 0
  br i1 %interrupt, label %leave, label %clear
leave:
  ret ptr null
clear:
  call void @PyErr_Clear()
  br label %in_python
in_python:
  %slow_answer = call ptr @slowly(ptr %self, ptr %args, i64 %count, ptr %names, ptr %plan)
  ret ptr %slow_answer
}
