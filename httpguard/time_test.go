package httpguard

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// timed is a request with a deadline header, if ms is not empty.
func timed(ms string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if ms != "" {
		r.Header.Set("Spillway-Timeout-Ms", ms)
	}
	return r
}

func TestRemainingTimeIsTheShortest(t *testing.T) {
	const none = -1
	for _, c := range []struct {
		name   string
		own    time.Duration // of the key
		header string
		outer  time.Duration // of the server
		want   time.Duration
	}{
		{"none", 0, "", 0, none},
		{"own", 300 * time.Millisecond, "", 0, 300 * time.Millisecond},
		{"header", 0, "200", 0, 200 * time.Millisecond},
		{"header below own", 300 * time.Millisecond, "200", 0, 200 * time.Millisecond},
		{"own below header", 300 * time.Millisecond, "400", 0, 300 * time.Millisecond},
		{"outer below both", 300 * time.Millisecond, "400", 100 * time.Millisecond, 100 * time.Millisecond},
		{"header below outer", 0, "50", 100 * time.Millisecond, 50 * time.Millisecond},
		{"a bad header changes nothing", 300 * time.Millisecond, "1h", 0, 300 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, rt := newMiddleware(t, Config{Trust: everybody})
				if err := rt.Registry().Declare("http:*", registry.Spec{Timeout: c.own}); err != nil {
					t.Fatal(err)
				}
				var got told
				r := timed(c.header)
				if c.outer > 0 {
					ctx, cancel := context.WithTimeout(r.Context(), c.outer)
					defer cancel()
					r = r.WithContext(ctx)
				}
				serve(m.Handler(listen(&got)), r)
				if !got.limited {
					got.left = none
				}
				if got.left != c.want {
					t.Errorf("the handler has %v, want %v", got.left, c.want)
				}
			})
		})
	}
}

func TestSpentTimeIsRefused(t *testing.T) {
	for _, c := range []struct {
		ms    string
		floor time.Duration
		want  int
	}{
		{"0", 0, 504},
		{"-5", 0, 504},
		{"1", 0, 200},
		{"40", 50 * time.Millisecond, 504},
		{"60", 50 * time.Millisecond, 200},
	} {
		synctest.Test(t, func(t *testing.T) {
			m, rt := newMiddleware(t, Config{Trust: everybody})
			if err := rt.Registry().Declare("http:*", registry.Spec{Floor: c.floor}); err != nil {
				t.Fatal(err)
			}
			served := false
			w := serve(m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true })), timed(c.ms))
			if w.Code != c.want || served != (c.want == 200) {
				t.Errorf("%s ms with a floor of %v: status %d, served %v", c.ms, c.floor, w.Code, served)
			}
			rt.AssertIdle()
		})
	}
}

// The time spent waiting for a place is part of what remains.
func TestWaitCountsFromArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, rt := newMiddleware(t, Config{Trust: everybody})
		if err := rt.Registry().Declare("http:*", registry.Spec{Limit: 1, Wait: time.Minute}); err != nil {
			t.Fatal(err)
		}
		var got told
		h := m.Handler(listen(&got))

		release := rt.Fill("http:*")
		time.AfterFunc(30*time.Millisecond, release)
		if w := serve(h, timed("100")); w.Code != 200 || got.left != 70*time.Millisecond {
			t.Errorf("after a wait of 30 ms: status %d, %v left of 100 ms", w.Code, got.left)
		}

		rt.Fill("http:*")
		start := time.Now()
		w := serve(h, timed("100"))
		if d := time.Since(start); d != 100*time.Millisecond || w.Code != 504 || !strings.Contains(w.Body.String(), "deadline") {
			t.Errorf("answered %d %s after %v, want 504 when the 100 ms were over", w.Code, w.Body, d)
		}
	})
}

// Without this the server would answer a request whose time ran out with an empty 200.
func TestSilenceAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, rt := newMiddleware(t, Config{})
		if err := rt.Registry().Declare("http:*", registry.Spec{Timeout: time.Second}); err != nil {
			t.Fatal(err)
		}
		wait := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		if w := serve(m.Handler(http.HandlerFunc(wait)), timed("")); w.Code != 504 || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("a handler that said nothing in its time: %d %s", w.Code, w.Body)
		}
		if s := rt.For("http:*").Snapshot(); s.Failed != 1 {
			t.Errorf("failed %d, want 1", s.Failed)
		}
		late := func(w http.ResponseWriter, r *http.Request) { wait(w, r); w.WriteHeader(202) }
		if w := serve(m.Handler(http.HandlerFunc(late)), timed("")); w.Code != 202 {
			t.Errorf("a handler that answered late: %d", w.Code)
		}
		rt.AssertIdle()
	})
}

// A stream keeps its place however old it is; a call that is merely slow loses it to a newcomer.
func TestStreamsAreNeverStale(t *testing.T) {
	for _, c := range []struct {
		name   string
		begin  func(http.ResponseWriter)
		stream bool
	}{
		{"slow", func(w http.ResponseWriter) { w.Write([]byte("x")) }, false},
		{"flushed", func(w http.ResponseWriter) { flush(w) }, true},
		{"controller", func(w http.ResponseWriter) { http.NewResponseController(w).Flush() }, true},
		{"events", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(200)
		}, true},
	} {
		for _, weight := range []int{1, 2} {
			t.Run(c.name+"/"+strconv.Itoa(weight), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m, rt := newMiddleware(t, Config{Weight: func(*http.Request) int { return weight }})
					if err := rt.Registry().Declare("http:*", registry.Spec{Limit: weight, Stale: time.Second}); err != nil {
						t.Fatal(err)
					}
					end := make(chan struct{})
					first := true
					h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						if first {
							first = false
							c.begin(w)
							<-end
						}
					}))
					go get(h, "/")
					synctest.Wait()
					<-time.After(time.Hour)
					want := 200
					if c.stream {
						want = 503
					}
					if got := get(h, "/").Code; got != want {
						t.Errorf("an hour later a newcomer got %d, want %d", got, want)
					}
					close(end)
					synctest.Wait()
					rt.AssertIdle()
					if n := rt.For("http:*").Snapshot().Refused[guard.ReasonFull]; (n > 0) != c.stream {
						t.Errorf("%d refusals", n)
					}
				})
			})
		}
	}
}
