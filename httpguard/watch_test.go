package httpguard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/guardtest"
	"github.com/spillway-go/spillway/registry"
	"github.com/spillway-go/spillway/watchdog"
)

// A handler that hangs is told with its stack, whatever the request's weight; a stream is not.
func TestSlowHandlerIsTold(t *testing.T) {
	for name, weight := range map[string]int{"one place": 1, "three places": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := guardtest.New(t, guard.WithWatchdog(watchdog.Config{}))
				if err := rt.Registry().SetDefault(registry.Spec{Limit: 10, Slow: time.Second}); err != nil {
					t.Fatal(err)
				}
				m, err := New(Config{Runtime: rt.Runtime, Weight: func(*http.Request) int { return weight }})
				if err != nil {
					t.Fatal(err)
				}
				leave := make(chan struct{})
				mux := http.NewServeMux()
				mux.HandleFunc("GET /hang", func(http.ResponseWriter, *http.Request) { standStill(leave) })
				mux.HandleFunc("GET /stream", func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_ = http.NewResponseController(w).Flush() // the recorder can
					<-leave
				})
				h := m.Handler(mux)
				for _, path := range []string{"/hang", "/stream"} {
					go h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
				}
				<-time.After(1500 * time.Millisecond)
				synctest.Wait()
				list := rt.Events()[1:] // without the one of the spec
				if len(list) != 1 || list[0].Kind != guard.EventSlow || list[0].Key != RouteKey("GET /hang") {
					t.Fatalf("told: %v", list)
				}
				stack := strings.Join(list[0].Report.Stack, "\n")
				if !strings.Contains(stack, "net/http.(*ServeMux).ServeHTTP ") { // this package's own frames are left out
					t.Errorf("%q %s", stack, list[0].Report.NoStack)
				}
				close(leave)
				synctest.Wait()
			})
		})
	}
}

//go:noinline
func standStill(leave chan struct{}) { <-leave }
