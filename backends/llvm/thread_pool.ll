;;; The threads that run tiles.
;;;
;;; A job is published in a ticket, `generation << 32 | next tile`. Whoever wants a tile reads the
;;; ticket, then the job, and takes the tile by compare-and-swap: it succeeds only where the ticket
;;; has not changed, so what was read belongs to the tile. Before a job is written the ticket is
;;; closed with a new generation, so that nobody can take a tile of a job that is half written. The
;;; caller takes tiles like the others and then waits only for tiles that others have taken; a
;;; worker that the system has put aside holds nobody up unless it has a tile.
;;;
;;; Where each thread should get the tiles that it had the last time, for what its caches still
;;; hold, they are divided into as many ranges as there are threads, with a ticket each. A thread
;;; begins with its own range, and helps the others when that is done. All ranges may be run
;;; backwards.
;;;
;;; Workers spin for a while after a job and then sleep on a condition variable. Linux may wake a
;;; worker on the processor of the thread that woke it, where the two would take turns while another
;;; processor is idle: a worker that finds itself there moves to another one. A second caller, or a
;;; tile that itself has tiles, finds the pool busy and runs its tiles alone. After a fork the
;;; child starts a pool of its own. Workers never end; at exit the system stops them, which is why
;;; the code is never freed. They block all signals, so that Python's handlers run where they would.

@tickets  = global [256 x [8 x i64]] zeroinitializer, align 64
@count    = global i64 0, align 64
@ranges   = global i64 1, align 8
@order    = global i64 0, align 8
@limit    = global i64 0, align 8
@body     = global ptr null, align 8
@context  = global ptr null, align 8
@done     = global i64 0, align 64
@busy     = global i32 0, align 64
@sleepers = global i32 0, align 4
@caller   = global i32 0, align 4
@workers  = global i64 0, align 8
@ready    = global i32 0, align 4
@mutex    = global [128 x i8] zeroinitializer, align 64
@wake     = global [128 x i8] zeroinitializer, align 64

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sched_yield()

; Made by thread_pool.py
declare i64 @most_spins()
declare i64 @most_threads()
declare void @pause()
declare i32 @set_signal_mask()

; From thread_pool_linux.ll, or thread_pool_elsewhere.ll
declare void @make_way()
declare i32 @processor()

; The ticket of a range.
define ptr @ticket(i64 %range) alwaysinline nounwind {
  %place = getelementptr [8 x i64], ptr @tickets, i64 %range
  ret ptr %place
}

; The first of n tiles that is in a range, out of so many.
define i64 @first(i64 %range, i64 %n, i64 %ranges) alwaysinline nounwind {
entry:
  %one = icmp eq i64 %ranges, 1
  br i1 %one, label %all, label %part
all:
  %end = mul i64 %range, %n
  ret i64 %end
part:
  %times = mul i64 %range, %n
  %tile = udiv i64 %times, %ranges
  ret i64 %tile
}

; Whether a thread may take a tile now.
define i1 @has_tile(i64 %index) nounwind {
entry:
  br label %look
look:
  %range = phi i64 [ 0, %entry ], [ %after, %next ]
  %ticket = call ptr @ticket(i64 %range)
  %now = load atomic i64, ptr %ticket seq_cst, align 8
  %n = load atomic i64, ptr @count acquire, align 8
  %ranges = load atomic i64, ptr @ranges acquire, align 8
  %most = load atomic i64, ptr @limit acquire, align 8
  %after = add i64 %range, 1
  %low = call i64 @first(i64 %range, i64 %n, i64 %ranges)
  %high = call i64 @first(i64 %after, i64 %n, i64 %ranges)
  %size = sub i64 %high, %low
  %taken = and i64 %now, 4294967295
  %left = icmp ult i64 %taken, %size
  %allowed = icmp ult i64 %index, %most
  %go = and i1 %left, %allowed
  br i1 %go, label %end, label %next
next:
  %others = icmp ult i64 %after, %ranges
  br i1 %others, label %look, label %end
end:
  ret i1 %go
}

; Takes and runs tiles until there is none for this thread; whether there was one.
; Finished tiles are reported at the end: until then the job cannot end, nor another begin.
define i1 @work(i64 %index) nounwind {
entry:
  %known = load atomic i64, ptr @ranges acquire, align 8
  %has_own = icmp ult i64 %index, %known
  %own = select i1 %has_own, i64 %index, i64 0
  br label %look
look:
  %ran = phi i64 [ 0, %entry ], [ %ran, %claim ], [ %more, %run ], [ %ran, %next ]
  %range = phi i64 [ %own, %entry ], [ %range, %claim ], [ %range, %run ], [ %following, %next ]
  %done_with = phi i64 [ 0, %entry ], [ %done_with, %claim ], [ %done_with, %run ], [ %ended, %next ]
  %ticket = call ptr @ticket(i64 %range)
  %now = load atomic i64, ptr %ticket acquire, align 8
  %n = load atomic i64, ptr @count acquire, align 8
  %ranges = load atomic i64, ptr @ranges acquire, align 8
  %order = load atomic i64, ptr @order acquire, align 8
  %most = load atomic i64, ptr @limit acquire, align 8
  %f = load atomic ptr, ptr @body acquire, align 8
  %c = load atomic ptr, ptr @context acquire, align 8
  %after = add i64 %range, 1
  %low = call i64 @first(i64 %range, i64 %n, i64 %ranges)
  %high = call i64 @first(i64 %after, i64 %n, i64 %ranges)
  %size = sub i64 %high, %low
  %taken = and i64 %now, 4294967295
  %left = icmp ult i64 %taken, %size
  %exists = icmp ult i64 %range, %ranges
  %allowed = icmp ult i64 %index, %most
  %a = and i1 %left, %exists
  %go = and i1 %a, %allowed
  br i1 %go, label %claim, label %next
next:
  %ended = add i64 %done_with, 1
  %others = icmp ult i64 %ended, %ranges
  %last = icmp uge i64 %after, %ranges
  %following = select i1 %last, i64 0, i64 %after
  br i1 %others, label %look, label %none
claim:
  %then = add i64 %now, 1
  %swap = cmpxchg ptr %ticket, i64 %now, i64 %then acq_rel acquire
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %run, label %look
run:
  %forwards = add i64 %low, %taken
  %end_of_rest = sub i64 %high, %taken
  %backwards = sub i64 %end_of_rest, 1
  %turned = icmp eq i64 %order, 2
  %tile = select i1 %turned, i64 %backwards, i64 %forwards
  call void %f(ptr %c, i64 %tile)
  %more = add i64 %ran, 1
  br label %look
none:
  %any = icmp ne i64 %ran, 0
  br i1 %any, label %tell, label %end
tell:
  %before = atomicrmw add ptr @done, i64 %ran release
  br label %end
end:
  ret i1 %any
}

define ptr @worker(ptr %argument) nounwind {
entry:
  %index = ptrtoint ptr %argument to i64
  %most = call i64 @most_spins()
  br label %look
look:
  %spins = phi i64 [ 0, %entry ], [ 0, %look ], [ %more, %idle ], [ 0, %awake ]
  %ran = call i1 @work(i64 %index)
  br i1 %ran, label %look, label %idle
idle:
  call void @pause()
  %more = add i64 %spins, 1
  %patient = icmp ult i64 %more, %most
  br i1 %patient, label %look, label %sleep
sleep:
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  %others = atomicrmw add ptr @sleepers, i32 1 seq_cst
  ; Whoever publishes after this sees the sleeper, and waits for the mutex to wake it.
  %late = call i1 @has_tile(i64 %index)
  br i1 %late, label %awake, label %wait
wait:
  %waited = call i32 @pthread_cond_wait(ptr @wake, ptr @mutex)
  br label %awake
awake:
  %fewer = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  call void @make_way()
  br label %look
}

; Starts workers until there are as many as wanted, or the system gives no more.
define void @grow(i64 %wanted) nounwind {
entry:
  %thread = alloca ptr, align 8
  %all = alloca [128 x i8], align 16
  %old = alloca [128 x i8], align 16
  %set = call i32 @set_signal_mask()
  %is_ready = load i32, ptr @ready, align 4
  %fresh = icmp eq i32 %is_ready, 0
  br i1 %fresh, label %prepare, label %mask
prepare:
  %m = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %w = call i32 @pthread_cond_init(ptr @wake, ptr null)
  store i32 1, ptr @ready, align 4
  br label %mask
mask:
  %filled = call i32 @sigfillset(ptr %all)
  %blocked = call i32 @pthread_sigmask(i32 %set, ptr %all, ptr %old)
  br label %next
next:
  %have = load i64, ptr @workers, align 8
  %few = icmp ult i64 %have, %wanted
  br i1 %few, label %start, label %end
start:
  %index = add i64 %have, 1
  %argument = inttoptr i64 %index to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %argument)
  %started = icmp eq i32 %failed, 0
  br i1 %started, label %count_it, label %end
count_it:
  %id = load ptr, ptr %thread, align 8
  %detached = call i32 @pthread_detach(ptr %id)
  store i64 %index, ptr @workers, align 8
  br label %next
end:
  %restored = call i32 @pthread_sigmask(i32 %set, ptr %old, ptr null)
  ret void
}

define void @serial(ptr %f, ptr %c, i64 %n, i64 %order) nounwind {
entry:
  %turned = icmp eq i64 %order, 2
  br label %head
head:
  %done = phi i64 [ 0, %entry ], [ %following, %run ]
  %more = icmp slt i64 %done, %n
  br i1 %more, label %run, label %end
run:
  %following = add i64 %done, 1
  %backwards = sub i64 %n, %following
  %tile = select i1 %turned, i64 %backwards, i64 %done
  call void %f(ptr %c, i64 %tile)
  br label %head
end:
  ret void
}

; Gives the tickets of some ranges this value, from the last to the first.
define void @set_tickets(i64 %ranges, i64 %value) nounwind {
entry:
  br label %set
set:
  %left = phi i64 [ %ranges, %entry ], [ %range, %set ]
  %range = sub i64 %left, 1
  %ticket = call ptr @ticket(i64 %range)
  %swapped = atomicrmw xchg ptr %ticket, i64 %value seq_cst
  %others = icmp ne i64 %range, 0
  br i1 %others, label %set, label %end
end:
  ret void
}

define void @stepwell_parallel_tiles(ptr %f, ptr %c, i64 %n, i64 %threads, i64 %order) nounwind {
entry:
  %several = icmp sgt i64 %n, 1
  %together = icmp sgt i64 %threads, 1
  %fits = icmp slt i64 %n, 4294967295
  %a = and i1 %several, %together
  %b = and i1 %a, %fits
  br i1 %b, label %enter, label %alone
enter:
  %swap = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %entered = extractvalue { i32, i1 } %swap, 1
  br i1 %entered, label %size, label %alone
alone:
  call void @serial(ptr %f, ptr %c, i64 %n, i64 %order)
  ret void
size:
  %most_threads = call i64 @most_threads()
  %too_many = icmp sgt i64 %threads, %most_threads
  %most = select i1 %too_many, i64 %most_threads, i64 %threads
  %wanted = sub i64 %most, 1
  %have = load i64, ptr @workers, align 8
  %few = icmp ult i64 %have, %wanted
  br i1 %few, label %more_workers, label %publish
more_workers:
  call void @grow(i64 %wanted)
  br label %publish
publish:
  %own = icmp ne i64 %order, 0
  %ranges = select i1 %own, i64 %most, i64 1
  %ranges_before = load atomic i64, ptr @ranges monotonic, align 8
  %shrinks = icmp ugt i64 %ranges_before, %ranges
  %tickets = select i1 %shrinks, i64 %ranges_before, i64 %ranges
  %old = load atomic i64, ptr @tickets monotonic, align 8
  %generation = lshr i64 %old, 32
  %g1 = add i64 %generation, 1
  %g1s = shl i64 %g1, 32
  %closed = or i64 %g1s, 4294967295
  call void @set_tickets(i64 %tickets, i64 %closed)
  store atomic i64 0, ptr @done release, align 8
  store atomic i64 %n, ptr @count release, align 8
  store atomic i64 %ranges, ptr @ranges release, align 8
  store atomic i64 %order, ptr @order release, align 8
  store atomic i64 %most, ptr @limit release, align 8
  store atomic ptr %f, ptr @body release, align 8
  store atomic ptr %c, ptr @context release, align 8
  %g2 = add i64 %g1, 1
  %open = shl i64 %g2, 32
  call void @set_tickets(i64 %ranges, i64 %open)
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %any = icmp ne i32 %asleep, 0
  br i1 %any, label %wake_up, label %work
wake_up:
  %here = call i32 @processor()
  store atomic i32 %here, ptr @caller monotonic, align 4
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  %woken = call i32 @pthread_cond_broadcast(ptr @wake)
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %work
work:
  %most_spins = call i64 @most_spins()
  %ran = call i1 @work(i64 0)
  br label %join
join:
  %spins = phi i64 [ 0, %work ], [ %again, %spin ], [ %again, %yield ]
  %finished = load atomic i64, ptr @done acquire, align 8
  %all = icmp eq i64 %finished, %n
  br i1 %all, label %leave, label %check
check:
  %again = add i64 %spins, 1
  %patient = icmp ult i64 %again, %most_spins
  br i1 %patient, label %spin, label %yield
spin:
  call void @pause()
  br label %join
yield:
  %yielded = call i32 @sched_yield()
  br label %join
leave:
  store atomic i32 0, ptr @busy release, align 4
  ret void
}

; In the child of a fork there are no workers; what they held is made anew.
define void @stepwell_forget_workers() nounwind {
  %old = load i64, ptr @tickets, align 8
  %closed = or i64 %old, 4294967295
  %ranges = load i64, ptr @ranges, align 8
  call void @set_tickets(i64 %ranges, i64 %closed)
  store i64 0, ptr @workers, align 8
  store i32 0, ptr @ready, align 4
  store i32 0, ptr @sleepers, align 4
  store i32 0, ptr @busy, align 4
  ret void
}
