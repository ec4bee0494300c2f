;;; The message of the last error of a thread, put together from pieces. What does not fit is left
;;; out.

@message = thread_local global [1024 x i8] zeroinitializer
@length = thread_local global i64 0

; The message of the last error in this thread; empty without one.
define ptr @last_message() nounwind {
  ret ptr @message
}

; Begins a message.
define void @begin_message() nounwind {
  store i64 0, ptr @length
  store i8 0, ptr @message
  ret void
}

define void @say_character(i8 %character) nounwind {
entry:
  %used = load i64, ptr @length
  %fits = icmp ult i64 %used, 1023
  br i1 %fits, label %append, label %done
append:
  %at = getelementptr i8, ptr @message, i64 %used
  %more = add i64 %used, 1
  %end = getelementptr i8, ptr @message, i64 %more
  store i8 %character, ptr %at
  store i8 0, ptr %end
  store i64 %more, ptr @length
  br label %done
done:
  ret void
}

; Appends a text that ends with 0.
define void @say(ptr %text) nounwind {
entry:
  br label %look
look:
  %at = phi ptr [ %text, %entry ], [ %following, %append ]
  %character = load i8, ptr %at
  %end = icmp eq i8 %character, 0
  br i1 %end, label %done, label %append
append:
  call void @say_character(i8 %character)
  %following = getelementptr i8, ptr %at, i64 1
  br label %look
done:
  ret void
}

; Appends a number in decimal.
define void @say_number(i64 %number) nounwind {
entry:
  %digits = alloca [24 x i8], align 1
  %negative = icmp slt i64 %number, 0
  br i1 %negative, label %sign, label %begin
sign:
  call void @say_character(i8 45)
  br label %begin
begin:
  %opposite = sub i64 0, %number
  %magnitude = select i1 %negative, i64 %opposite, i64 %number
  %last = getelementptr i8, ptr %digits, i64 23
  store i8 0, ptr %last
  br label %divide
divide:
  %rest = phi i64 [ %magnitude, %begin ], [ %quotient, %divide ]
  %place = phi i64 [ 23, %begin ], [ %before, %divide ]
  %quotient = udiv i64 %rest, 10
  %times = mul i64 %quotient, 10
  %digit = sub i64 %rest, %times
  %small = trunc i64 %digit to i8
  %character = add i8 %small, 48
  %before = sub i64 %place, 1
  %at = getelementptr i8, ptr %digits, i64 %before
  store i8 %character, ptr %at
  %more = icmp ne i64 %quotient, 0
  br i1 %more, label %divide, label %print
print:
  call void @say(ptr %at)
  ret void
}
