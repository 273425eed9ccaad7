package httpguard

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/registry"
)

// A route with a rate answers 429 with the time to come back, to each caller by itself.
func TestRateOfARoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, rt := newMiddleware(t, Config{Trust: func(*http.Request) bool { return true }})
		err := rt.Registry().Declare("http:*", registry.Spec{Limit: 10, Rate: registry.Rate{Calls: 1, By: registry.ByCaller}})
		if err != nil {
			t.Fatal(err)
		}
		h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		ask := func(caller string) (int, string) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set(m.cfg.Headers.Caller, caller)
			w := serve(h, r)
			return w.Code, w.Header().Get("Retry-After")
		}
		for _, caller := range []string{"ann", "bob"} {
			if code, _ := ask(caller); code != http.StatusOK {
				t.Errorf("%s's first: %d", caller, code)
			}
			if code, after := ask(caller); code != http.StatusTooManyRequests || after != "1" {
				t.Errorf("%s's second: %d, Retry-After %q", caller, code, after)
			}
		}
		<-time.After(time.Second)
		if code, _ := ask("ann"); code != http.StatusOK {
			t.Errorf("a second later: %d", code)
		}
	})
}
