// Command pool makes thumbnails of uploaded photos on goroutines of a pool, and answers uploads in time.
//
//	go run ./examples/pool
//
// Three times as many uploads come as there is time for. An upload waits for its thumbnail as long as its visitor has
// patience, and leaves then: the work goes on and the thumbnail is stored. One core is left for the answers, each other one works
// on a thumbnail while two more wait for it; more uploads are refused at once, instead of making all of them slow. One
// photo is broken and makes the decoder panic: that upload gets an error, and the log is told.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/spillway-go/spillway/bulkhead/pool"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

const (
	key     = registry.Key("photos.Thumbnail.Make")
	uploads = 200
	longest = 3 * time.Second // with fewer uploads, on a slow machine
	places  = 3               // for each that are worked on at once
	surplus = 3               // times as many uploads as there is time for
	patient = 3               // times as long as a thumbnail takes is a visitor
)

func main() {
	if _, err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (*shop, error) {
	rt, err := guard.NewRuntime(nil, guard.WithLogger(zerolog.Nop()))
	if err != nil {
		return nil, err
	}
	defer rt.Close() //nolint:errcheck // is nil
	size := max(1, runtime.GOMAXPROCS(0)-1)
	if err = rt.Registry().Declare(key, registry.Spec{Limit: places * size, Expand: 1}); err != nil {
		return nil, err
	}
	broken := make(chan string, uploads)
	p, err := pool.New(pool.Config{Size: size, Queue: places * size, OnPanic: func(key registry.Key, err *pool.PanicError) {
		broken <- fmt.Sprintf("%s: %v", key, err.Value)
	}})
	if err != nil {
		return nil, err
	}
	s := &shop{pool: p, guard: rt.For(key), size: size, takes: takes()}
	s.open(ctx)
	if err = p.Close(ctx); err != nil {
		return nil, err
	}
	close(broken)
	s.report(out)
	for line := range broken {
		fmt.Fprintln(out, "told:    ", line)
	}
	return s, nil
}

// shop is the service: what it answered, and the thumbnails that are there in the end.
type shop struct {
	pool  *pool.Pool
	guard *guard.Guard
	size  int           // of the pool
	takes time.Duration // a thumbnail

	mu                         sync.Mutex // guards the rest
	accepted                   []*pool.Task
	made, left, failed, stored int
	working, most              int
	slowest                    time.Duration   // answer
	refusals                   []time.Duration // how long each took
}

// takes is how long a thumbnail takes when nothing else is going on.
func takes() time.Duration {
	best := time.Hour
	for range 3 {
		start := time.Now()
		shrink(photo(0), 16)
		best = min(best, time.Since(start))
	}
	return best
}

// open serves all uploads, and waits for the thumbnails that nobody waited for. Uploads come by the clock, whether answers come or not.
func (s *shop) open(ctx context.Context) {
	every := s.takes / time.Duration(surplus*s.size)
	var visitors sync.WaitGroup
	start := time.Now()
	for i := range max(20, min(uploads, int(longest/every))) {
		time.Sleep(time.Until(start.Add(time.Duration(i) * every)))
		visitors.Go(func() { s.upload(ctx, i) })
	}
	visitors.Wait()
	for _, task := range s.accepted { // Close would not run those in the queue
		<-task.Done()
	}
}

// upload is one request. The thumbnail outlives it, so its context does not end with the visitor's.
func (s *shop) upload(ctx context.Context, number int) {
	start := time.Now()
	visitor, cancel := context.WithTimeout(ctx, patient*s.takes)
	defer cancel()
	task, err := s.pool.Go(context.WithoutCancel(visitor), s.guard, func(context.Context) error {
		return s.make(number)
	})
	if err == nil {
		err = task.Wait(visitor)
	}
	took := time.Since(start)

	s.mu.Lock()
	defer s.mu.Unlock()
	if task == nil {
		s.refusals = append(s.refusals, took)
		return
	}
	s.accepted = append(s.accepted, task)
	s.slowest = max(s.slowest, took)
	var panicked *pool.PanicError
	switch {
	case err == nil:
		s.made++
	case errors.As(err, &panicked):
		s.failed++
	default:
		s.left++
	}
}

// make runs on a goroutine of the pool.
func (s *shop) make(number int) error {
	s.mu.Lock()
	s.working++
	s.most = max(s.most, s.working)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.working--
		s.mu.Unlock()
	}()
	thumbnail := shrink(photo(number), 16)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored += min(1, len(thumbnail.Pix))
	return nil
}

func (s *shop) report(out io.Writer) {
	slices.Sort(s.refusals)
	fmt.Fprintf(out, "%d uploads, %d worked on at once, %d places; each takes %v\n",
		len(s.accepted)+len(s.refusals), s.size, places*s.size, s.takes.Round(time.Millisecond))
	fmt.Fprintf(out, "answered: %d in time, %d visitors had left, %d refused, %d broken\n", s.made, s.left, len(s.refusals), s.failed)
	fmt.Fprintf(out, "stored:   %d thumbnails, never more than %d in work at once\n", s.stored, s.most)
	fmt.Fprintf(out, "slowest:  an answer after %v", s.slowest.Round(time.Millisecond))
	if n := len(s.refusals); n > 0 {
		fmt.Fprintf(out, "; half of the refusals within %v", s.refusals[n/2].Round(time.Microsecond))
	}
	fmt.Fprintln(out)
}
