package rate

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// policy is a source that tests steer.
type policy struct {
	mu     sync.Mutex
	asked  []int64
	answer func(ctx context.Context, want int64) (Grant, error)
}

func (p *policy) Tokens(ctx context.Context, want int64) (Grant, error) {
	p.mu.Lock()
	p.asked = append(p.asked, want)
	answer := p.answer
	p.mu.Unlock()
	return answer(ctx, want)
}

func (p *policy) calls() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.asked) }

func fed(t *testing.T, own Rate, answer func(context.Context, int64) (Grant, error)) (*Bucket, *policy) {
	p := &policy{answer: answer}
	return bucket(t, TokenBucket{Rate: own, Burst: 10, Source: p}), p
}

func TestSourceFeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, p := fed(t, PerSecond(0), func(_ context.Context, want int64) (Grant, error) { return Grant{Tokens: want}, nil })
		if passed(b, 4) != 4 || p.calls() != 0 {
			t.Error("full, and nothing to ask for")
		}
		b.Allow() // half is left
		synctest.Wait()
		if p.calls() != 1 || p.asked[0] != 5 {
			t.Errorf("asked for %v", p.asked)
		}
		pause(time.Millisecond)
		if d, _ := b.Peek(t.Context(), 10); !d.OK {
			t.Errorf("after the grant: %+v", d)
		}
		if got := passed(b, 100); got < 10 || got > 20 { // one more grant may come meanwhile
			t.Errorf("%d of 10", got)
		}
		for range 20 { // those who wait wake with every grant
			if err := b.Wait(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestSourceThatFails(t *testing.T) {
	for name, answer := range map[string]func(context.Context, int64) (Grant, error){
		"error":    func(context.Context, int64) (Grant, error) { return Grant{Tokens: 10}, errors.New("down") },
		"panic":    func(context.Context, int64) (Grant, error) { panic("down") },
		"exit":     func(context.Context, int64) (Grant, error) { runtime.Goexit(); return Grant{}, nil },
		"negative": func(context.Context, int64) (Grant, error) { return Grant{Tokens: -5, Next: time.Second}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, p := fed(t, PerSecond(2), answer)
				passed(b, 10)
				synctest.Wait()
				for range 100 {
					b.Allow()
					synctest.Wait()
				}
				if p.calls() != 1 {
					t.Errorf("asked %d times in no time", p.calls())
				}
				pause(5 * time.Second)
				if got := passed(b, 100); got != 10 {
					t.Errorf("%d of its own 10", got)
				}
				synctest.Wait()
				if p.calls() != 2 {
					t.Errorf("asked %d times", p.calls())
				}
			})
		})
	}
}

// A source that hangs holds one goroutine until its context ends; decisions do not wait for it.
func TestSourceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, p := fed(t, PerSecond(0), func(ctx context.Context, _ int64) (Grant, error) { <-ctx.Done(); return Grant{}, ctx.Err() })
		start := time.Now()
		passed(b, 1000)
		d := take(t, b, 1)
		if time.Since(start) != 0 || d.OK || d.RetryAfter > time.Second {
			t.Errorf("%+v after %v", d, time.Since(start))
		}
		pause(SourceTimeout + SourcePause)
		if p.calls() != 1 {
			t.Errorf("asked %d times", p.calls())
		}
		take(t, b, 1)
		synctest.Wait()
		if p.calls() != 2 {
			t.Errorf("asked %d times", p.calls())
		}
		pause(SourceTimeout + time.Second)
	})
}

// A grant that is too large fills the bucket, and no more.
func TestSourceBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := fed(t, PerSecond(0), func(context.Context, int64) (Grant, error) { return Grant{Tokens: 1 << 62, Next: time.Hour}, nil })
		take(t, b, 10)
		synctest.Wait()
		if got := passed(b, 100); got != 10 {
			t.Errorf("%d after a huge grant", got)
		}
		if d := take(t, b, 1); d.OK || d.RetryAfter <= time.Minute || d.RetryAfter > time.Hour {
			t.Errorf("the source said not to come for an hour: %+v", d)
		}
		if d := take(t, b, 11); d.RetryAfter != Never {
			t.Errorf("11 of 10: %+v", d)
		}
	})
}
