;;; The threads that run tiles.
;;;
;;; A job is published in a ticket, `generation << 32 | next tile`. Whoever wants a tile reads the
;;; ticket, then the job, and takes the tile by compare-and-swap: it succeeds only where the ticket
;;; has not changed, so what was read belongs to the tile. Before a job is written the ticket is
;;; closed with a new generation, so that nobody can take a tile of a job that is half written. The
;;; caller takes tiles like the others and then waits only for tiles that others have taken; a
;;; worker that the system has put aside holds nobody up unless it has a tile.
;;;
;;; Workers spin for a while after a job and then sleep on a condition variable. Linux may wake a
;;; worker on the processor of the thread that woke it, where the two would take turns while another
;;; processor is idle: a worker that finds itself there moves to another one. A second caller, or a
;;; tile that itself has tiles, finds the pool busy and runs its tiles alone. After a fork the
;;; child starts a pool of its own. Workers never end; at exit the system stops them, which is why
;;; the code is never freed. They block all signals, so that Python's handlers run where they would.

@ticket   = global i64 4294967295, align 64
@count    = global i64 0, align 64
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

; Whether a thread may take a tile now.
define i1 @has_tile(i64 %index) nounwind {
  %now = load atomic i64, ptr @ticket seq_cst, align 8
  %n = load atomic i64, ptr @count acquire, align 8
  %most = load atomic i64, ptr @limit acquire, align 8
  %next = and i64 %now, 4294967295
  %left = icmp ult i64 %next, %n
  %allowed = icmp ult i64 %index, %most
  %go = and i1 %left, %allowed
  ret i1 %go
}

; Takes and runs tiles until there is none for this thread; whether there was one.
; Finished tiles are reported at the end: until then the job cannot end, nor another begin.
define i1 @work(i64 %index) nounwind {
entry:
  br label %look
look:
  %ran = phi i64 [ 0, %entry ], [ %ran, %claim ], [ %more, %run ]
  %now = load atomic i64, ptr @ticket acquire, align 8
  %n = load atomic i64, ptr @count acquire, align 8
  %most = load atomic i64, ptr @limit acquire, align 8
  %f = load atomic ptr, ptr @body acquire, align 8
  %c = load atomic ptr, ptr @context acquire, align 8
  %next = and i64 %now, 4294967295
  %left = icmp ult i64 %next, %n
  %allowed = icmp ult i64 %index, %most
  %go = and i1 %left, %allowed
  br i1 %go, label %claim, label %none
claim:
  %then = add i64 %now, 1
  %swap = cmpxchg ptr @ticket, i64 %now, i64 %then acq_rel acquire
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %run, label %look
run:
  call void %f(ptr %c, i64 %next)
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

define void @serial(ptr %f, ptr %c, i64 %n) nounwind {
entry:
  br label %head
head:
  %tile = phi i64 [ 0, %entry ], [ %following, %run ]
  %more = icmp slt i64 %tile, %n
  br i1 %more, label %run, label %end
run:
  call void %f(ptr %c, i64 %tile)
  %following = add i64 %tile, 1
  br label %head
end:
  ret void
}

define void @stepwell_parallel_tiles(ptr %f, ptr %c, i64 %n, i64 %threads) nounwind {
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
  call void @serial(ptr %f, ptr %c, i64 %n)
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
  %old = load atomic i64, ptr @ticket monotonic, align 8
  %generation = lshr i64 %old, 32
  %g1 = add i64 %generation, 1
  %g1s = shl i64 %g1, 32
  %closed = or i64 %g1s, 4294967295
  %swapped = atomicrmw xchg ptr @ticket, i64 %closed seq_cst
  store atomic i64 0, ptr @done release, align 8
  store atomic i64 %n, ptr @count release, align 8
  store atomic i64 %most, ptr @limit release, align 8
  store atomic ptr %f, ptr @body release, align 8
  store atomic ptr %c, ptr @context release, align 8
  %g2 = add i64 %g1, 1
  %open = shl i64 %g2, 32
  %opened = atomicrmw xchg ptr @ticket, i64 %open seq_cst
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
  %old = load i64, ptr @ticket, align 8
  %closed = or i64 %old, 4294967295
  store i64 %closed, ptr @ticket, align 8
  store i64 0, ptr @workers, align 8
  store i32 0, ptr @ready, align 4
  store i32 0, ptr @sleepers, align 4
  store i32 0, ptr @busy, align 4
  ret void
}
