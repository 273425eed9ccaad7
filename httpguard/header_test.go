package httpguard

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// told is what a handler finds in its context.
type told struct {
	level   registry.Criticality
	caller  string
	attempt int
	left    time.Duration
	limited bool
}

// listen returns a handler that notes what it is told.
func listen(got *told) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		*got = told{level: guard.CriticalityFrom(ctx), caller: guard.CallerFrom(ctx), attempt: guard.AttemptFrom(ctx)}
		var end time.Time
		if end, got.limited = ctx.Deadline(); got.limited {
			got.left = time.Until(end)
		}
	})
}

func everybody(*http.Request) bool { return true }

func TestHeaders(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name, value string
		want        told
		bad         bool
	}{
		{"Spillway-Criticality", "critical_plus", told{level: registry.CriticalPlus}, false},
		{"Spillway-Criticality", "sheddable", told{level: registry.Sheddable}, false},
		{"Spillway-Criticality", "Sheddable", told{}, true},
		{"Spillway-Criticality", "unset", told{}, true},
		{"Spillway-Criticality", "", told{}, true},
		{"Spillway-Caller", "checkout", told{caller: "checkout"}, false},
		{"Spillway-Caller", strings.Repeat("c", 128), told{caller: strings.Repeat("c", 128)}, false},
		{"Spillway-Caller", strings.Repeat("c", 129), told{}, true},
		{"Spillway-Caller", "a b", told{}, true},
		{"Spillway-Caller", "a\x01", told{}, true},
		{"Spillway-Caller", "\xff", told{}, true},
		{"Spillway-Attempt", "1", told{attempt: 1}, false},
		{"Spillway-Attempt", "1000", told{attempt: 1000}, false},
		{"Spillway-Attempt", "0", told{}, true},
		{"Spillway-Attempt", "1001", told{}, true},
		{"Spillway-Attempt", "+1", told{}, true},
		{"Spillway-Attempt", "one", told{}, true},
		{"Spillway-Timeout-Ms", "250", told{left: 250 * time.Millisecond, limited: true}, false},
		{"Spillway-Timeout-Ms", "0250", told{left: 250 * time.Millisecond, limited: true}, false},
		{"Spillway-Timeout-Ms", "999999999999999", told{left: day, limited: true}, false},
		{"Spillway-Timeout-Ms", "1000000000000000", told{}, true},
		{"Spillway-Timeout-Ms", "1e3", told{}, true},
		{"Spillway-Timeout-Ms", "1.5", told{}, true},
		{"Spillway-Timeout-Ms", "10s", told{}, true},
		{"Spillway-Timeout-Ms", "+5", told{}, true},
		{"Spillway-Timeout-Ms", "--5", told{}, true},
		{"Spillway-Timeout-Ms", "-", told{}, true},
		{"Spillway-Timeout-Ms", " 5", told{}, true},
		{"Spillway-Timeout-Ms", "", told{}, true},
		{"X-Other", "7", told{}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			m, rt := newMiddleware(t, Config{Trust: everybody})
			var got told
			h := m.Handler(listen(&got))
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set(c.name, c.value)
			w := serve(h, r)
			if got != c.want || w.Code != 200 {
				t.Errorf("%s: %q: told %+v with status %d, want %+v", c.name, c.value, got, w.Code, c.want)
			}
			want := map[string]uint64{}
			if c.bad {
				want[c.name] = 1
			}
			if bad := m.BadHeaders(); !maps.Equal(bad, want) {
				t.Errorf("%s: %q: bad headers %v, want %v", c.name, c.value, bad, want)
			}
			rt.AssertIdle()
		})
	}
}

func TestAllHeadersUnderOwnNames(t *testing.T) {
	m, _ := newMiddleware(t, Config{Trust: everybody,
		Headers: Headers{Criticality: "x-level", Caller: "x-from", Timeout: "x-left", Attempt: "x-try"}})
	var got told
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for name, v := range map[string]string{"X-Level": "sheddable_plus", "X-From": "cron", "X-Left": "60000", "X-Try": "3",
		"Spillway-Caller": "other"} {
		r.Header.Set(name, v)
	}
	serve(m.Handler(listen(&got)), r)
	if got.level != registry.SheddablePlus || got.caller != "cron" || got.attempt != 3 || !got.limited || got.left > time.Minute || got.left < 50*time.Second {
		t.Errorf("told %+v", got)
	}
	if r.Context() != t.Context() && guard.CallerFrom(r.Context()) != "" {
		t.Error("the caller's own request was changed")
	}
}

func TestHeaderGivenTwice(t *testing.T) {
	m, _ := newMiddleware(t, Config{Trust: everybody})
	var got told
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, name := range defaultHeaders {
		r.Header.Add(name, "1")
		r.Header.Add(name, "1")
	}
	serve(m.Handler(listen(&got)), r)
	if got != (told{}) {
		t.Errorf("told %+v, want nothing", got)
	}
	if bad := m.BadHeaders(); len(bad) != int(headers) || bad["Spillway-Attempt"] != 1 {
		t.Errorf("bad headers %v, want each once", bad)
	}
}

func TestOnlyTrustedPeersAreHeard(t *testing.T) {
	net := netip.MustParsePrefix
	for _, c := range []struct {
		trust func(*http.Request) bool
		peer  string
		want  bool
	}{
		{nil, "10.0.0.1:1234", false},
		{TrustNetworks(), "10.0.0.1:1234", false},
		{TrustNetworks(net("10.0.0.0/8")), "10.1.2.3:1234", true},
		{TrustNetworks(net("10.0.0.0/8")), "11.1.2.3:1234", false},
		{TrustNetworks(net("10.0.0.0/8")), "[::ffff:10.1.2.3]:1234", true},
		{TrustNetworks(net("192.0.2.0/24"), net("fd00::/8")), "[fd00::1%eth0]:1234", true},
		{TrustNetworks(net("fd00::/8")), "[2001:db8::1]:1234", false},
		{TrustNetworks(net("0.0.0.0/0"), net("::/0")), "@", false},
		{TrustNetworks(net("0.0.0.0/0"), net("::/0")), "", false},
		{func(r *http.Request) bool { return r.URL.Path == "/" }, "anybody", true},
	} {
		m, _ := newMiddleware(t, Config{Trust: c.trust})
		var got told
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.peer
		r.Header.Set("Spillway-Caller", "checkout")
		r.Header.Set("Spillway-Timeout-Ms", "0")
		r.Header.Set("Spillway-Attempt", "bad")
		w := serve(m.Handler(listen(&got)), r)
		heard := w.Code == http.StatusGatewayTimeout
		if heard != c.want || len(m.BadHeaders()) > 0 != c.want {
			t.Errorf("peer %q: status %d, bad headers %v, want heard %v", c.peer, w.Code, m.BadHeaders(), c.want)
		}
	}
}

// Criticality decides who waits behind whom.
func TestCriticalityReachesTheWaitingRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, rt := newMiddleware(t, Config{Trust: everybody})
		if err := rt.Registry().Declare("http:*", registry.Spec{Limit: 1, Wait: time.Minute, Queue: 3}); err != nil {
			t.Fatal(err)
		}
		var order []string
		h := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			order = append(order, guard.CriticalityFrom(r.Context()).String())
		}))
		release := rt.Fill("http:*")
		for _, level := range []string{"sheddable", "critical", "critical_plus"} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Spillway-Criticality", level)
			go serve(h, r)
			synctest.Wait()
		}
		release()
		synctest.Wait()
		if got := fmt.Sprint(order); got != "[critical_plus critical sheddable]" {
			t.Errorf("served %v, want the most important first", got)
		}
	})
}

func FuzzHeaders(f *testing.F) {
	f.Add("critical", "checkout", "250", "1")
	f.Add("", "a b", "-1", "0")
	f.Add("x", "\xff", "999999999999999", "1001")
	f.Fuzz(func(t *testing.T, level, caller, timeout, attempt string) {
		m, err := New(Config{Trust: everybody, Runtime: fuzzRuntime(t)})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for i, v := range []string{level, caller, timeout, attempt} {
			r.Header[m.names[i]] = []string{v}
		}
		ctx, cancel := m.inherit(r)
		defer cancel()
		bad := m.BadHeaders()
		if c := guard.CriticalityFrom(ctx); (c == registry.CriticalityUnset) != (bad[m.names[0]] == 1) || c != 0 && c.String() != level {
			t.Errorf("criticality %q gives %v", level, c)
		}
		if c := guard.CallerFrom(ctx); (c == "") != (bad[m.names[1]] == 1) || c != "" && c != caller {
			t.Errorf("caller %q gives %q", caller, c)
		}
		end, limited := ctx.Deadline()
		if limited == (bad[m.names[2]] == 1) || limited && time.Until(end) > maxTimeout {
			t.Errorf("timeout %q gives %v, %v", timeout, end, limited)
		}
		if n := guard.AttemptFrom(ctx); (n == 0) != (bad[m.names[3]] == 1) || n < 0 || n > maxAttempt {
			t.Errorf("attempt %q gives %d", attempt, n)
		}
	})
}

func fuzzRuntime(t *testing.T) *guard.Runtime {
	t.Helper()
	rt, err := guard.NewRuntime(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}
