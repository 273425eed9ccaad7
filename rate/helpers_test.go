package rate

import (
	"context"
	"testing"
	"time"
)

func limiter(t testing.TB, a Algorithm, keys int) *Limiter {
	t.Helper()
	l, err := New(Config{Algorithm: a, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func bucket(t testing.TB, a Algorithm) *Bucket {
	t.Helper()
	return limiter(t, a, 1).Bucket("")
}

func take(t testing.TB, b *Bucket, n int64) Decision {
	t.Helper()
	d, err := b.Take(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// pause lets virtual time pass; for bubbles only.
func pause(d time.Duration) { <-time.After(d) }

// passed counts how many of n calls of Allow pass.
func passed(b *Bucket, n int) (ok int) {
	for range n {
		if b.Allow() {
			ok++
		}
	}
	return ok
}
