package bulkhead

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestB7AllOrNone: a heavy call takes all its places in one step.
func TestB7AllOrNone(t *testing.T) {
	b := mustNew(t, Config{Limit: 10})
	for _, tt := range []struct {
		weight int
		want   error
		live   int
	}{
		{7, nil, 7},
		{4, ErrFull, 7},
		{3, nil, 10},
		{1, ErrFull, 10},
		{40, ErrFull, 10}, // the ceiling, within reach of an expansion
		{41, ErrTooHeavy, 10},
		{1 << 30, ErrTooHeavy, 10},
		{0, ErrWeight, 10},
		{-1, ErrWeight, 10},
	} {
		p, err := b.EnterN(context.Background(), tt.weight, 0)
		if !errors.Is(err, tt.want) {
			t.Errorf("weight %d: %v, want %v", tt.weight, err, tt.want)
		}
		keep(t, p)
		check(t, b, tt.live, 0, 0)
	}
}

// TestB7EvictsAsManyAsNeededOrNone.
func TestB7EvictsAsManyAsNeededOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 6, Expand: 2, Stale: time.Second})
		heads := []Permit{enterN(t, b, 2), enterN(t, b, 1)}
		pass(500 * ms)
		enterN(t, b, 3)
		pass(500 * ms)
		if _, err := b.EnterN(context.Background(), 4, 0); !errors.Is(err, ErrFull) {
			t.Fatalf("weight 4 with three stale places: %v, want ErrFull", err)
		}
		check(t, b, 6, 0, 0)
		enterN(t, b, 2) // the head alone is enough
		check(t, b, 6, 2, 0)
		enterN(t, b, 1)
		check(t, b, 6, 3, 0)
		exits(t, heads[1], true)
		exits(t, heads[0], true, false)
		check(t, b, 6, 0, 0)
	})
}

// TestB7AHeavyHeadFreesMoreThanNeeded, and what is left over serves others.
func TestB7AHeavyHeadFreesMoreThanNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 4, Expand: 3, Stale: 100 * ms, Wait: 200 * ms, Queue: 9})
		enterN(t, b, 4)
		pass(50 * ms)
		calls := []*call{enterLater(t, b, 1, 0), enterLater(t, b, 1, 0), enterLater(t, b, 2, 0)}
		pass(51 * ms)
		for i, c := range calls {
			if !c.in() {
				t.Errorf("call %d is not in", i)
			}
		}
		check(t, b, 4, 4, 0)
	})
}

// TestB7NobodyOfItsLevelOvertakes a heavy waiter whose turn it is; who is more important does.
func TestB7NobodyOfItsLevelOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 4, Expand: 1, Wait: time.Minute, Queue: 9})
		running := enterSome(t, b, 4)
		heavy := enterLater(t, b, 3, 1)
		pass(ms)
		light := enterLater(t, b, 1, 1)
		less := enterLater(t, b, 1, 2)
		synctest.Wait()
		for i := range 2 {
			exits(t, running[i], true)
			synctest.Wait()
			check(t, b, 3-i, 0, 3)
		}
		more := enterLater(t, b, 1, 0)
		synctest.Wait()
		if !more.in() {
			t.Fatal("a more important call waits behind a heavy one, with places free")
		}
		more.permit.Exit()
		newcomer := enterLater(t, b, 1, 1)
		synctest.Wait()
		if heavy.done.Load() || light.done.Load() || less.done.Load() || newcomer.done.Load() {
			t.Fatal("somebody overtook the heavy call")
		}
		exits(t, running[2], true)
		synctest.Wait()
		if !heavy.in() || light.done.Load() {
			t.Fatalf("with three places free the heavy call is in: %v, the next: %v", heavy.in(), light.in())
		}
		heavy.permit.Exit()
		synctest.Wait()
		if !light.in() || !newcomer.in() || !less.in() {
			t.Error("after the heavy call there is a place for everybody")
		}
	})
}

// TestB7TheTurnSurvivesStandingOverload: newest first does not starve a heavy call whose turn it is.
func TestB7TheTurnSurvivesStandingOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 2, Expand: 1, Wait: time.Minute, Queue: 50})
		running := enterSome(t, b, 2)
		first := enterLater(t, b, 1, 0)
		synctest.Wait()
		b.mu.Lock()
		b.room.standing, b.room.calm = true, now()
		b.mu.Unlock()
		heavy := enterLater(t, b, 2, 0) // the newest: its turn
		pass(ms)
		running[0].Exit()
		pass(ms)
		newest := enterLater(t, b, 1, 0)
		synctest.Wait()
		if newest.done.Load() || first.done.Load() || heavy.done.Load() {
			t.Fatal("somebody overtook the heavy call")
		}
		running[1].Exit()
		synctest.Wait()
		if !heavy.in() {
			t.Error("the heavy call is not in")
		}
		b.Close()
	})
}

// TestB7HeavierThanTheBound: no place that is given back could admit such a call, so that it stands in nobody's way until the bound
// has grown.
func TestB7HeavierThanTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 2, Expand: 4, Wait: 300 * ms, Queue: 2})
		heavy := enterLater(t, b, 5, 0)
		pass(ms)
		check(t, b, 0, 0, 1)
		for range 3 { // places are free
			p := enter(t, b)
			p.Exit()
		}
		p := enterSome(t, b, 2)
		light := enterLater(t, b, 1, 0)
		pass(ms)
		full := enterLater(t, b, 1, 0)
		pass(ms)
		if !errors.Is(full.err, ErrFull) {
			t.Errorf("in a full room: %v, want ErrFull", full.err)
		}
		p[0].Exit()
		synctest.Wait()
		if !light.in() || heavy.done.Load() {
			t.Fatalf("the light call is in: %v, the heavy one: %v", light.in(), heavy.in())
		}
		b.SetBound(6)
		synctest.Wait()
		if heavy.done.Load() {
			t.Fatal("two of six places are taken, and five are admitted")
		}
		waits := enterLater(t, b, 1, 0)
		synctest.Wait()
		if waits.done.Load() {
			t.Fatal("somebody overtook the heavy call when its turn had come")
		}
		p[1].Exit()
		synctest.Wait()
		if !heavy.in() || waits.done.Load() {
			t.Errorf("the heavy call is in: %v, the one behind it: %v, with %d in flight", heavy.in(), waits.in(), b.InFlight())
		}
		b.Close()
	})
}

// TestB7TheTurnPassesWithTheBound: a heavy waiter whose turn it is blocks nobody once the bound is below its weight, and has its turn
// back when the bound is.
func TestB7TheTurnPassesWithTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 4, Wait: time.Minute, Queue: 9})
		p := enterSome(t, b, 4)
		heavy := enterLater(t, b, 3, 0)
		synctest.Wait()
		p[0].Exit()
		synctest.Wait()
		light := enterLater(t, b, 1, 0)
		last := enterLater(t, b, 1, 0)
		synctest.Wait()
		b.SetBound(2)
		p[1].Exit()
		p[2].Exit()
		synctest.Wait()
		if heavy.done.Load() || light.in() == last.in() {
			t.Fatalf("one place of two is free: in are %v, %v, %v", heavy.in(), light.in(), last.in())
		}
		b.SetBound(4)
		p[3].Exit()
		synctest.Wait()
		if !heavy.in() {
			t.Error("the heavy call did not get its turn back")
		}
		b.Close()
	})
}

// TestB7HeavierThanANewCeiling: a call that waits is told that it can never enter any more.
func TestB7HeavierThanANewCeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 4, Expand: 1, Wait: time.Minute, Queue: 9})
		p := enterSome(t, b, 4)
		heavy := enterLater(t, b, 3, 0)
		light := enterLater(t, b, 1, 0)
		synctest.Wait()
		if err := b.Configure(Config{Limit: 2, Expand: 1, Wait: time.Minute}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !errors.Is(heavy.err, ErrTooHeavy) {
			t.Errorf("heavier than the new ceiling: %v, want ErrTooHeavy", heavy.err)
		}
		for _, x := range p[:3] {
			x.Exit()
		}
		synctest.Wait()
		if !light.in() {
			t.Error("the light call is not in")
		}
	})
}

// TestB7AHeavyWaiterThatGivesUp frees the way for the lighter ones behind it.
func TestB7AHeavyWaiterThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Limit: 3, Expand: 1, Wait: time.Minute, Queue: 9})
		enterN(t, b, 2)
		heavy := enterLater(t, b, 2, 0)
		synctest.Wait()
		light := enterLater(t, b, 1, 0)
		synctest.Wait()
		if light.done.Load() {
			t.Fatal("the light call overtook the heavy one")
		}
		heavy.cancel()
		synctest.Wait()
		if !light.in() {
			t.Error("the light call still waits, with a place free")
		}
	})
}

// TestB7HeavyScopedCalls are counted, found nested and given back like light ones.
func TestB7HeavyScopedCalls(t *testing.T) {
	b := mustNew(t, Config{Limit: 5})
	tk, out := b.TakeSlow(context.Background(), &Demand{Weight: 4, Scoped: true})
	if !out.Admitted() {
		t.Fatal(out)
	}
	check(t, b, 4, 0, 0)
	if !b.Give(tk) || b.Give(tk) {
		t.Error("Give does not count once")
	}
	check(t, b, 0, 0, 0)
}
