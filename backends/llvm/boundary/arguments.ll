;;; Arguments: whether they can be taken as they are, and what is passed.

; Python, NumPy and LLVM
declare i64 @PyLong_AsSsize_t(ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyTuple_Size(ptr)

; Made by code.py
declare ptr @array_type()
declare i64 @data_of(ptr)
declare i64 @dtype_mask()
declare ptr @dtype_of(ptr)
declare i32 @flags_of(ptr)
declare i64 @kind_of(ptr)
declare ptr @name_indices()
declare ptr @name_indptr()
declare ptr @name_shape()
declare ptr @name_to_csr()
declare ptr @name_values()
declare i32 @rank_of(ptr)
declare i32 @readable()
declare ptr @shape_of(ptr)
declare ptr @tuple_type()
declare ptr @type_of(ptr)

; From reader.ll
declare i1 @fits(ptr, i64, i64)
declare void @hold(ptr, ptr)
declare i64 @next(ptr)
declare void @occupy(ptr, i64, i64)
declare void @pass(ptr, i64)
declare i64 @word(ptr, i64)

; Whether an object is a tuple, of no subclass.
define i1 @is_tuple(ptr %o) alwaysinline nounwind {
  %type = call ptr @type_of(ptr %o)
  %tuple_type = call ptr @tuple_type()
  %tuple = icmp eq ptr %type, %tuple_type
  ret i1 %tuple
}

; Whether an object is an array, of no subclass, with this dtype, rank and flags.
define i1 @is_plain(ptr %o, i64 %dtype, i64 %rank, i32 %wanted) alwaysinline nounwind {
entry:
  %type = call ptr @type_of(ptr %o)
  %array_type = call ptr @array_type()
  %array = icmp eq ptr %type, %array_type
  br i1 %array, label %look, label %no
look:
  %descr = call ptr @dtype_of(ptr %o)
  %word = call i64 @kind_of(ptr %descr)
  %mask = call i64 @dtype_mask()
  %masked = and i64 %word, %mask
  %right_dtype = icmp eq i64 %masked, %dtype
  %rank32 = call i32 @rank_of(ptr %o)
  %has = sext i32 %rank32 to i64
  %right_rank = icmp eq i64 %has, %rank
  %flags = call i32 @flags_of(ptr %o)
  %set = and i32 %flags, %wanted
  %right_flags = icmp eq i32 %set, %wanted
  %a = and i1 %right_dtype, %right_rank
  %b = and i1 %a, %right_flags
  ret i1 %b
no:
  ret i1 false
}

define i1 @take_dense(ptr %r, ptr %o) nounwind {
entry:
  %dtype = call i64 @next(ptr %r)
  %item = call i64 @next(ptr %r)
  %rank = call i64 @next(ptr %r)
  %readable = call i32 @readable()
  %plain = call i1 @is_plain(ptr %o, i64 %dtype, i64 %rank, i32 %readable)
  br i1 %plain, label %begin, label %no
begin:
  %shape = call ptr @shape_of(ptr %o)
  %data = call i64 @data_of(ptr %o)
  call void @pass(ptr %r, i64 %data)
  br label %head
head:
  %axis = phi i64 [ 0, %begin ], [ %axis1, %following ]
  %bytes = phi i64 [ %item, %begin ], [ %bytes1, %following ]
  %more = icmp slt i64 %axis, %rank
  br i1 %more, label %dimension, label %done
dimension:
  %code = call i64 @next(ptr %r)
  %passed = call i64 @next(ptr %r)
  %at = getelementptr i64, ptr %shape, i64 %axis
  %size = load i64, ptr %at
  %right = call i1 @fits(ptr %r, i64 %code, i64 %size)
  %some = icmp sgt i64 %size, 0
  %good = and i1 %right, %some
  br i1 %good, label %fine, label %no
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
done:
  call void @occupy(ptr %r, i64 %data, i64 %bytes)
  ret i1 true
no:
  ret i1 false
}

; The length of a plain vector, -1 for what is none.
define i64 @length(ptr %o, i64 %dtype) nounwind {
  %readable = call i32 @readable()
  %plain = call i1 @is_plain(ptr %o, i64 %dtype, i64 1, i32 %readable)
  br i1 %plain, label %yes, label %no
yes:
  %shape = call ptr @shape_of(ptr %o)
  %size = load i64, ptr %shape
  ret i64 %size
no:
  ret i64 -1
}

; An attribute that the call holds until its end; null with an error set where there is none.
define ptr @attribute(ptr %r, ptr %o, ptr %name) nounwind {
  %value = call ptr @PyObject_GetAttr(ptr %o, ptr %name)
  %none = icmp eq ptr %value, null
  br i1 %none, label %end, label %keep
keep:
  call void @hold(ptr %r, ptr %value)
  br label %end
end:
  ret ptr %value
}

define i1 @is_csr(ptr %record, ptr %o) alwaysinline nounwind {
  %types_word = call i64 @word(ptr %record, i64 6)
  %types = inttoptr i64 %types_word to ptr
  %one = call i64 @word(ptr %types, i64 0)
  %two = call i64 @word(ptr %types, i64 1)
  %type = call ptr @type_of(ptr %o)
  %type_word = ptrtoint ptr %type to i64
  %is_one = icmp eq i64 %type_word, %one
  %is_two = icmp eq i64 %type_word, %two
  %either = or i1 %is_one, %is_two
  ret i1 %either
}

define i1 @take_csr(ptr %r, ptr %o) nounwind {
entry:
  %given = alloca [2 x ptr], align 8
  %record = load ptr, ptr %r
  %end = getelementptr i64, ptr %record, i64 13
  store ptr %end, ptr %r
  %value_dtype = call i64 @word(ptr %record, i64 0)
  %indptr_dtype = call i64 @word(ptr %record, i64 2)
  %indices_dtype = call i64 @word(ptr %record, i64 4)
  %rows_code = call i64 @word(ptr %record, i64 8)
  %columns_code = call i64 @word(ptr %record, i64 10)
  %entries_code = call i64 @word(ptr %record, i64 12)
  %is_tuple = call i1 @is_tuple(ptr %o)
  br i1 %is_tuple, label %tuple, label %object
tuple:
  %items = call i64 @PyTuple_Size(ptr %o)
  %three = icmp eq i64 %items, 3
  br i1 %three, label %unpack, label %no
unpack:
  %indptr0 = call ptr @PyTuple_GetItem(ptr %o, i64 0)
  %indices0 = call ptr @PyTuple_GetItem(ptr %o, i64 1)
  %values0 = call ptr @PyTuple_GetItem(ptr %o, i64 2)
  %pointers0 = call i64 @length(ptr %indptr0, i64 %indptr_dtype)
  %rows0 = sub i64 %pointers0, 1
  %square = icmp eq i64 %rows_code, %columns_code
  %columns0 = select i1 %square, i64 %rows0, i64 %columns_code
  br label %check
object:
  %matrix_given = call i1 @is_csr(ptr %record, ptr %o)
  br i1 %matrix_given, label %matrix, label %graph
graph:
  %dtype_name = call i64 @word(ptr %record, i64 7)
  %dtype_object = inttoptr i64 %dtype_name to ptr
  %second = getelementptr ptr, ptr %given, i64 1
  store ptr %o, ptr %given
  store ptr %dtype_object, ptr %second
  %to_csr = call ptr @name_to_csr()
  %made = call ptr @PyObject_VectorcallMethod(ptr %to_csr, ptr %given, i64 2, ptr null)
  %nothing = icmp eq ptr %made, null
  br i1 %nothing, label %no, label %converted
converted:
  call void @hold(ptr %r, ptr %made)
  %is_matrix = call i1 @is_csr(ptr %record, ptr %made)
  br i1 %is_matrix, label %matrix, label %no
matrix:
  %m = phi ptr [ %o, %object ], [ %made, %converted ]
  %name_of_shape = call ptr @name_shape()
  %shape = call ptr @attribute(ptr %r, ptr %m, ptr %name_of_shape)
  %a = icmp eq ptr %shape, null
  br i1 %a, label %no, label %with_shape
with_shape:
  %shape_tuple = call i1 @is_tuple(ptr %shape)
  br i1 %shape_tuple, label %count, label %no
count:
  %axes = call i64 @PyTuple_Size(ptr %shape)
  %two = icmp eq i64 %axes, 2
  br i1 %two, label %get_indptr, label %no
get_indptr:
  %rows_object = call ptr @PyTuple_GetItem(ptr %shape, i64 0)
  %columns_object = call ptr @PyTuple_GetItem(ptr %shape, i64 1)
  %rows1 = call i64 @PyLong_AsSsize_t(ptr %rows_object)
  %columns1 = call i64 @PyLong_AsSsize_t(ptr %columns_object)
  %name_of_indptr = call ptr @name_indptr()
  %indptr1 = call ptr @attribute(ptr %r, ptr %m, ptr %name_of_indptr)
  %b = icmp eq ptr %indptr1, null
  br i1 %b, label %no, label %get_indices
get_indices:
  %name_of_indices = call ptr @name_indices()
  %indices1 = call ptr @attribute(ptr %r, ptr %m, ptr %name_of_indices)
  %c = icmp eq ptr %indices1, null
  br i1 %c, label %no, label %get_values
get_values:
  %name_of_values = call ptr @name_values()
  %values1 = call ptr @attribute(ptr %r, ptr %m, ptr %name_of_values)
  %d = icmp eq ptr %values1, null
  br i1 %d, label %no, label %check_indptr
check_indptr:
  %pointers1 = call i64 @length(ptr %indptr1, i64 %indptr_dtype)
  br label %check
check:
  %indptr = phi ptr [ %indptr0, %unpack ], [ %indptr1, %check_indptr ]
  %indices = phi ptr [ %indices0, %unpack ], [ %indices1, %check_indptr ]
  %values = phi ptr [ %values0, %unpack ], [ %values1, %check_indptr ]
  %pointers = phi i64 [ %pointers0, %unpack ], [ %pointers1, %check_indptr ]
  %rows = phi i64 [ %rows0, %unpack ], [ %rows1, %check_indptr ]
  %columns = phi i64 [ %columns0, %unpack ], [ %columns1, %check_indptr ]
  %index_count = call i64 @length(ptr %indices, i64 %indices_dtype)
  %entries = call i64 @length(ptr %values, i64 %value_dtype)
  %last = sub i64 %pointers, 1
  %right_pointers = icmp eq i64 %last, %rows
  %right_indices = icmp eq i64 %index_count, %entries
  %some_rows = icmp sgt i64 %rows, 0
  %some_columns = icmp sgt i64 %columns, 0
  %some_entries = icmp sgt i64 %entries, 0
  %e = and i1 %right_pointers, %right_indices
  %f = and i1 %some_rows, %some_columns
  %g = and i1 %e, %some_entries
  %h = and i1 %f, %g
  br i1 %h, label %symbols, label %no
symbols:
  %right_rows = call i1 @fits(ptr %r, i64 %rows_code, i64 %rows)
  %right_columns = call i1 @fits(ptr %r, i64 %columns_code, i64 %columns)
  %right_entries = call i1 @fits(ptr %r, i64 %entries_code, i64 %entries)
  %i = and i1 %right_rows, %right_columns
  %j = and i1 %i, %right_entries
  br i1 %j, label %begin, label %no
begin:
  %indptr_data = call i64 @data_of(ptr %indptr)
  %indices_data = call i64 @data_of(ptr %indices)
  %values_data = call i64 @data_of(ptr %values)
  call void @pass(ptr %r, i64 %indptr_data)
  %rows_passed = call i64 @word(ptr %record, i64 9)
  %quiet_rows = icmp eq i64 %rows_passed, 0
  br i1 %quiet_rows, label %middle, label %put_rows
put_rows:
  call void @pass(ptr %r, i64 %pointers)
  br label %middle
middle:
  call void @pass(ptr %r, i64 %indices_data)
  call void @pass(ptr %r, i64 %entries)
  call void @pass(ptr %r, i64 %values_data)
  call void @pass(ptr %r, i64 %entries)
  %columns_passed = call i64 @word(ptr %record, i64 11)
  %quiet_columns = icmp eq i64 %columns_passed, 0
  br i1 %quiet_columns, label %done, label %put_columns
put_columns:
  call void @pass(ptr %r, i64 %columns)
  br label %done
done:
  %value_item = call i64 @word(ptr %record, i64 1)
  %indptr_item = call i64 @word(ptr %record, i64 3)
  %indices_item = call i64 @word(ptr %record, i64 5)
  %indptr_bytes = mul i64 %pointers, %indptr_item
  %indices_bytes = mul i64 %entries, %indices_item
  %values_bytes = mul i64 %entries, %value_item
  call void @occupy(ptr %r, i64 %indptr_data, i64 %indptr_bytes)
  call void @occupy(ptr %r, i64 %indices_data, i64 %indices_bytes)
  call void @occupy(ptr %r, i64 %values_data, i64 %values_bytes)
  ret i1 true
no:
  ret i1 false
}
