package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestNowNeverGoesBack(t *testing.T) {
	last := Now()
	for range 10_000 {
		now := Now()
		if now < last {
			t.Fatalf("the clock went from %d to %d", last, now)
		}
		last = now
	}
}

func TestNowIsPositiveInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := Now()
		<-time.After(time.Hour)
		if before <= 0 || Now()-before != int64(time.Hour) {
			t.Errorf("an hour from %d is %d", before, Now()-before)
		}
	})
}
