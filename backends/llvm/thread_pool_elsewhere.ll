;;; Systems that do not say where a thread runs.

define i32 @processor() nounwind {
  ret i32 0
}

define void @make_way() nounwind {
  ret void
}
