package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/spillway-go/spillway/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestOutcomes sends a request for every kind of answer and looks how it is
// counted.
func TestOutcomes(t *testing.T) {
	answers := []struct {
		answer func(http.ResponseWriter, *http.Request)
		want   Outcome
	}{
		{func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }, Served},
		{func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, Refused},
		{func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, Failed},
		{func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGatewayTimeout) }, Failed},
		{func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Failed},
		{func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, GaveUp},
	}
	for _, test := range answers {
		server := httptest.NewServer(http.HandlerFunc(test.answer))
		rec := new(recorder)
		load := newLoad(strings.TrimPrefix(server.URL, "http://"), rec)
		load.run(t.Context(), time.Now(), []Arrival{{Endpoint: Slow}})
		server.Close()
		samples := rec.all()
		if len(samples) != 1 || samples[0].Outcome != test.want || samples[0].Endpoint != Slow {
			t.Errorf("samples %+v, want one with outcome %v", samples, test.want)
		}
		if test.want == GaveUp && samples[0].Latency < patience {
			t.Errorf("gave up after %v, before its patience of %v", samples[0].Latency, patience)
		}
	}
}

// TestLateIsNotServed sends a request whose time was a deadline ago: the best
// answer is too late then, however fast it comes.
func TestLateIsNotServed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	rec := new(recorder)
	newLoad(strings.TrimPrefix(server.URL, "http://"), rec).run(t.Context(), time.Now(), []Arrival{{At: -deadline}})
	if got := rec.all()[0]; got.Outcome != Late || got.Lateness < deadline {
		t.Errorf("outcome %v, lateness %v, want late by the sender's fault", got.Outcome, got.Lateness)
	}
}

// world is dependency and service in this process.
func world(t *testing.T, side Side) (*dependency, *service, *load) {
	t.Helper()
	d, s := newDependency(), new(service)
	back := httptest.NewServer(d.handler())
	t.Cleanup(back.Close)
	h, err := s.handler(Serve{Side: side, Dependency: strings.TrimPrefix(back.URL, "http://")})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(h)
	t.Cleanup(func() {
		front.Close()
		s.client.CloseIdleConnections()
		if s.shield != nil {
			if err := s.shield.close(); err != nil {
				t.Error(err)
			}
		}
	})
	return d, s, newLoad(strings.TrimPrefix(front.URL, "http://"), new(recorder))
}

// hang lets the dependency hang under 100 slow requests at once, and sends ten
// quick ones into it.
func hang(t *testing.T, side Side) (Status, [2]Tally) {
	t.Helper()
	if testing.Short() {
		t.Skip("waits for time-outs")
	}
	d, s, load := world(t, side)
	d.obey(Order{Behaviour: &Behaviour{Hang: true}})
	var plan []Arrival
	for range 100 {
		plan = append(plan, Arrival{Endpoint: Slow})
	}
	for i := range 10 {
		plan = append(plan, Arrival{At: 300*time.Millisecond + time.Duration(i)*10*time.Millisecond, Endpoint: Quick})
	}
	load.run(t.Context(), time.Now(), plan)
	return s.mark(), tallies(load.rec.all(), func(Sample) bool { return true })
}

func TestHangUnguarded(t *testing.T) {
	status, got := hang(t, Unguarded)
	if n := got[Quick].Counts[Served]; n > 2 {
		t.Errorf("%d of 10 quick requests were served, want the pool to be gone", n)
	}
	if status.Running[Slow] != 100 || got[Slow].Counts[Refused] != 0 {
		t.Errorf("/slow: %d inside, outcomes %v, want all 100 inside and none refused", status.Running[Slow], got[Slow].Counts)
	}
}

func TestHangGuarded(t *testing.T) {
	status, got := hang(t, Guarded)
	if n := got[Quick].Counts[Served]; n != 10 {
		t.Errorf("%d of 10 quick requests were served", n)
	}
	running, inside := status.Running[Slow], status.Inside[Slow]
	if running != slowPlaces || inside < slowPlaces || inside > slowPlaces+slowRoom {
		t.Errorf("/slow: %d running, %d inside, want %d and at most %d", running, inside, slowPlaces, slowPlaces+slowRoom)
	}
	if n := got[Slow].Counts[Refused]; n != 100-slowPlaces {
		t.Errorf("%d slow requests refused, want %d", n, 100-slowPlaces)
	}
}

// TestNapIsRightOnAverage is what the capacity of the slow endpoint rests on.
func TestNapIsRightOnAverage(t *testing.T) {
	if testing.Short() {
		t.Skip("measures for a second")
	}
	var n nap
	const d, rounds = 5 * time.Millisecond, 200
	start := time.Now()
	for range rounds {
		n.take(d)
	}
	// A busy machine makes it longer than any correction can mend.
	if mean := time.Since(start) / rounds; mean < d*95/100 || mean > d*130/100 {
		t.Errorf("naps of %v took %v on average", d, mean)
	}
}

func TestGaugeKeepsItsPeak(t *testing.T) {
	var g gauge
	for range 3 {
		g.add()
	}
	g.done()
	g.add()
	if now, peak := g.now.Load(), g.peak.Load(); now != 3 || peak != 3 {
		t.Errorf("now %d, peak %d, want 3 and 3", now, peak)
	}
}

// roomy is a machine on which all is well.
type roomy struct{ looks atomic.Uint64 }

func (r *roomy) Normal() bool      { return true }
func (r *roomy) CPUTight() bool    { return false }
func (r *roomy) MemoryTight() bool { return false }
func (r *roomy) Why() string       { return "all is well" }
func (r *roomy) Number() uint64    { return r.looks.Add(1) }

// TestStory plays the acts that follow the play.
func TestStory(t *testing.T) {
	if testing.Short() {
		t.Skip("plays for three seconds")
	}
	d, s, _ := world(t, Unguarded)
	grow, err := s.tell(actGrow, guard.WithPressure(new(roomy)))
	if err != nil {
		t.Fatal(err)
	}
	if says := strings.Join(grow.Bound, "\n"); !strings.Contains(says, "bound 4 -> 8: ") || !strings.Contains(says, "bound 8 -> 16: ") {
		t.Errorf("the bound took no two steps:\n%s", says)
	}
	d.obey(Order{Behaviour: &Behaviour{Hang: true}})
	hang, err := s.tell(actHang, guard.WithPressure(new(roomy)))
	if err != nil {
		t.Fatal(err)
	}
	if len(hang.Bound) == 0 || !strings.HasPrefix(hang.Bound[0], "bound stays at 4: ") || !strings.HasSuffix(hang.Bound[0], " are late") {
		t.Errorf("while calls hang: %q", hang.Bound)
	}
	if stack := strings.Join(shorten(hang.Stack), "\n"); !strings.Contains(hang.Slow, `of "shop.Reports.hang" run`) || !strings.Contains(strings.Join(hang.Stack, "\n"), ".(*service).call ") {
		t.Errorf("%q, and the stack is\n%s", hang.Slow, stack)
	}
}
