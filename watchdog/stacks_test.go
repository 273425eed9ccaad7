package watchdog_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/watchdog"
)

func stuck(leave chan struct{}) error {
	<-leave
	return nil
}

func TestW1OwnStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := watchdog.NewLedger(time.Second)
		_, pen := watch(t, watchdog.Config{Source: l})
		leave := make(chan struct{})
		go l.Do(key, func() error { return stuck(leave) })
		elapse(1500 * time.Millisecond)
		r := only(t, pen.take())
		wantStack(t, r, "stuck")
		t.Log(r, r.Stack)
		close(leave)
		elapse(time.Second)
		t.Log(only(t, pen.take()))
	})
}
