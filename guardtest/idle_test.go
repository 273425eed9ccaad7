package guardtest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

func TestAssertIdleFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, f := newFake(t)
		rt.AssertIdle() // nothing was ever called
		rt.Do("k", func() error { return nil })
		rt.AssertIdle()
		if s := f.take(); s != "" {
			t.Fatalf("an idle runtime: %s", s)
		}
		pass, err := rt.For("k").EnterN(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		pass.Pin()
		<-time.After(1500 * time.Millisecond)
		rt.AssertIdle()
		wantError(t, f, "guardtest: not idle", "k: 3 in flight", "goroutine ", "for 1.5s", "3 places", "a stream")
		pass.Exit()
		rt.AssertIdle()
	})
}

func TestAssertIdleSeesWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, f := newFake(t)
		if err := rt.Registry().Declare("k", registry.Spec{Limit: 1, Wait: time.Minute}); err != nil {
			t.Fatal(err)
		}
		release := rt.Fill("k")
		go rt.Do("k", func() error { return nil })
		synctest.Wait()
		rt.AssertIdle()
		wantError(t, f, "k: 1 in flight", "k: 1 waiting")
		release()
		synctest.Wait()
		rt.AssertIdle()
	})
}

func TestAssertIdleNamesTheKeyOfAGroup(t *testing.T) {
	rt, f := newFake(t)
	spec := registry.Spec{Limit: 4, Group: "shared"}
	if err := rt.Registry().Replace(map[registry.Key]registry.Spec{"a": spec, "b": spec}); err != nil {
		t.Fatal(err)
	}
	rt.For("b")
	pass, err := rt.For("a").Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rt.AssertIdle()
	got := f.take()
	if !strings.Contains(got, "a: 1 in flight") || strings.Contains(got, "b: ") {
		t.Errorf("the assertion says\n%s\nwant a and not b", got)
	}
	pass.Exit()
	rt.AssertIdle()
}

func TestAssertIdleListsAFew(t *testing.T) {
	rt, f := newFake(t)
	var passes []guard.Pass
	for range maxListed + 5 {
		pass, err := rt.For("k").Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		passes = append(passes, pass)
	}
	rt.AssertIdle()
	got := f.take()
	if n := strings.Count(got, "goroutine "); n != maxListed || !strings.Contains(got, "and 5 more") {
		t.Errorf("%d calls are listed in\n%s", n, got)
	}
	for _, p := range passes {
		p.Exit()
	}
	rt.AssertIdle()
}

func TestAssertIdleTellsOfLostPasses(t *testing.T) {
	rt, f := newFake(t)
	lose := func() {
		if _, err := rt.For("k").Enter(context.Background()); err != nil {
			t.Error(err)
		}
	}
	lose()
	for range 100 {
		runtime.GC()
		if rt.For("k").Snapshot().Bulkhead.InFlight == 0 {
			break
		}
		runtime.Gosched()
	}
	rt.AssertIdle()
	wantError(t, f, "k: 1 passes were lost without Exit")
}

func TestAssertIdleWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, f := newFake(t)
		rt.Inject("k", Latency(40*time.Millisecond))
		go rt.Do("k", func() error { return nil })
		synctest.Wait()
		start := time.Now()
		rt.AssertIdleWithin(10 * time.Millisecond)
		wantError(t, f, "not idle after 10ms", "k: 1 in flight")
		rt.AssertIdleWithin(time.Hour)
		if d := time.Since(start); d > 50*time.Millisecond {
			t.Errorf("it took %v to see that the call ended after 40ms", d)
		}
		rt.AssertIdle()
	})
}

func ExampleRuntime_AssertIdle() {
	f := &fakeTB{} // stands for the *testing.T that a test has
	defer f.end()
	rt := New(f)
	rt.Do("shop.Store.Get", func() error {
		rt.AssertIdle()
		return nil
	})
	first, _, _ := strings.Cut(f.take(), "\n\t\t")
	fmt.Println(first)
	// Output:
	// guardtest: not idle:
	// 	shop.Store.Get: 1 in flight
}
