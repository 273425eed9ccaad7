// Package pool runs guarded calls on goroutines of its own, so that whoever waits for one may leave.
//
//	task, err := pool.Go(ctx, guard.For("shop.Thumbnails.Make"), func(ctx context.Context) error {
//		return makeThumbnail(ctx, photo)
//	})
//	if err != nil {
//		return err // refused: not run
//	}
//	err = task.Wait(request.Context())
//
// A task holds a place of its guard's key from before [Go] returns until its function has returned, whoever waits or left. So never more
// tasks of a key run than its bound allows, at any instant, and a bound that grows, shrinks or is replaced is followed by itself. A refusal
// is the guard's [guard.Rejection], as fast as that of [guard.Guard.Enter]: no goroutine is asked.
//
// The package's functions use one pool for all keys and runtimes, with as many goroutines as there are tasks. A [Pool] with a Size runs at
// most so many, for instance one for each core; tasks that it accepted beyond that wait in its queue, with their places. The goroutines
// are those of github.com/panjf2000/ants; they are used again, and end when they had nothing to do for [Config.Idle].
//
// Do not use it for calls whose caller waits anyway: [guard.Guard.DoContext] runs them on the caller's goroutine, which is ten times cheaper
// and keeps the panic's own way up. Importing the package starts two goroutines of ants, which last as long as the process. Inside a
// synctest bubble make a Pool of the bubble's own, and close it.
package pool
