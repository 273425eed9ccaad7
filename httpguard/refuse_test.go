package httpguard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/guardtest"
)

// answers is the documented contract: every reason, with what is on the wire.
var answers = map[guard.Reason]struct {
	status     int
	retryAfter string
	body       string
}{
	guard.ReasonFull:       {503, "1", `{"title":"Service Unavailable","status":503,"reason":"full","retry_after_ms":1000}`},
	guard.ReasonTooHeavy:   {503, "", `{"title":"Service Unavailable","status":503,"reason":"too_heavy"}`},
	guard.ReasonDeadline:   {504, "", `{"title":"Gateway Timeout","status":504,"reason":"deadline"}`},
	guard.ReasonCanceled:   {499, "", ""},
	guard.ReasonDenied:     {503, "", `{"title":"Service Unavailable","status":503,"reason":"denied"}`},
	guard.ReasonRate:       {429, "1", `{"title":"Too Many Requests","status":429,"reason":"rate","retry_after_ms":1000}`},
	guard.ReasonQuota:      {429, "1", `{"title":"Too Many Requests","status":429,"reason":"quota","retry_after_ms":1000}`},
	guard.ReasonOverload:   {503, "1", `{"title":"Service Unavailable","status":503,"reason":"overload","retry_after_ms":1000}`},
	guard.ReasonOpen:       {503, "1", `{"title":"Service Unavailable","status":503,"reason":"open","retry_after_ms":1000}`},
	guard.ReasonThrottled:  {503, "1", `{"title":"Service Unavailable","status":503,"reason":"throttled","retry_after_ms":1000}`},
	guard.ReasonClosed:     {503, "1", `{"title":"Service Unavailable","status":503,"reason":"closed","retry_after_ms":1000}`},
	guard.ReasonInvalidKey: {500, "", `{"title":"Internal Server Error","status":500,"reason":"invalid_key"}`},
}

// unserved is a handler that must not run.
func unserved(t *testing.T) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a refused request was served") })
}

func TestAnswerForEveryReason(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	h := m.Handler(unserved(t))
	for _, reason := range guard.Reasons() {
		want, ok := answers[reason]
		if !ok {
			t.Errorf("reason %v has no answer: add it to StatusOf, to the package's comment and here", reason)
			continue
		}
		rt.Refuse("http:*", reason)
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			w := serve(h, httptest.NewRequest(method, "/secret/4711", strings.NewReader("body")))
			body := w.Body.String()
			wantBody, wantLength, wantType := want.body, "0", ""
			if want.body != "" {
				wantBody += "\n"
				wantLength, wantType = strconv.Itoa(len(wantBody)), "application/problem+json"
			}
			if method == http.MethodHead {
				wantBody = ""
			}
			if w.Code != want.status || body != wantBody {
				t.Errorf("%v %s: %d %q, want %d %q", reason, method, w.Code, body, want.status, wantBody)
			}
			for name, v := range map[string]string{"Retry-After": want.retryAfter, "Cache-Control": "no-store",
				"Content-Length": wantLength, "Content-Type": wantType} {
				if got := w.Header().Get(name); got != v {
					t.Errorf("%v %s: %s is %q, want %q", reason, method, name, got, v)
				}
			}
		}
	}
	if len(answers) != len(guard.Reasons()) {
		t.Errorf("%d answers for %d reasons", len(answers), len(guard.Reasons()))
	}
}

func TestBodiesAreJSON(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	for _, reason := range guard.Reasons() {
		rt.Refuse("http:*", reason)
		w := get(m.Handler(unserved(t)), "/")
		if w.Code == StatusClientClosedRequest {
			continue
		}
		var doc struct {
			Title  string `json:"title"`
			Status int    `json:"status"`
			Reason string `json:"reason"`
		}
		d := json.NewDecoder(w.Body)
		if err := d.Decode(&doc); err != nil || doc.Status != w.Code || doc.Title != http.StatusText(w.Code) || doc.Reason != reason.String() {
			t.Errorf("%v: %+v, %v", reason, doc, err)
		}
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{1: 1, 100 * time.Millisecond: 1, time.Second: 1, time.Second + 1: 2, 90 * time.Second: 90} {
		if got := seconds(d); got != want {
			t.Errorf("seconds(%v) = %d, want %d", d, got, want)
		}
	}
	w := httptest.NewRecorder()
	problem{status: 503, reason: "full", after: 1500 * time.Microsecond}.write(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if got := w.Body.String(); !strings.Contains(got, `"retry_after_ms":2}`) || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%v %s", w.Header(), got)
	}
}

// Headers that were meant for the answer that is not given must not describe the one that is.
func TestRefusalReplacesHeaders(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	rt.Refuse("http:*", guard.ReasonFull)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Content-Encoding", "ETag", "Last-Modified", "Content-Length", "Content-Type", "Cache-Control", "X-Request-Id"} {
			w.Header().Set(name, "before")
		}
		m.Handler(unserved(t)).ServeHTTP(w, r)
	})
	got := get(h, "/").Header()
	want := fmt.Sprint(http.Header{"Content-Type": {"application/problem+json"}, "Content-Length": {"83"}, "Retry-After": {"1"},
		"Cache-Control": {"no-store"}, "X-Request-Id": {"before"}})
	if fmt.Sprint(got) != want {
		t.Errorf("headers\n%v, want\n%v", got, want)
	}
}

func TestInjectedFailures(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("secret"), "500 " + `{"title":"Internal Server Error","status":500,"reason":"failed"}` + "\n"},
		{fmt.Errorf("a drill: %w", context.DeadlineExceeded), "504 " + `{"title":"Gateway Timeout","status":504,"reason":"deadline"}` + "\n"},
		{context.Canceled, "499 "},
	} {
		rt.Inject("http:*", guardtest.Fail(c.err))
		w := get(m.Handler(unserved(t)), "/")
		if got := fmt.Sprintf("%d %s", w.Code, w.Body); got != c.want {
			t.Errorf("%v: answer %q, want %q", c.err, got, c.want)
		}
	}
	rt.AssertIdle()
}

func TestRejectedHook(t *testing.T) {
	m, rt := newMiddleware(t, Config{
		Rejected: func(w http.ResponseWriter, r *http.Request, rejection *guard.Rejection) {
			if rejection.Reason() == guard.ReasonOpen {
				fmt.Fprintf(w, "an older %s", r.URL.Path)
				return
			}
			Reject(w, r, rejection)
		},
		RateLimit: func(*http.Request, *guard.Rejection) Policy { t.Error("RateLimit was called"); return Policy{} },
	})
	h := m.Handler(unserved(t))
	rt.Refuse("http:*", guard.ReasonOpen)
	if w := get(h, "/page"); w.Code != 200 || w.Body.String() != "an older /page" {
		t.Errorf("the hook's answer is %d %q", w.Code, w.Body)
	}
	rt.Refuse("http:*", guard.ReasonRate)
	if w := get(h, "/page"); w.Code != 429 {
		t.Errorf("the default answer has status %d", w.Code)
	}
}

func TestRejectInAHandler(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	rt.Refuse("store", guard.ReasonQuota)
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := rt.For("store").DoContext(r.Context(), func(context.Context) error { return errors.New("broken") })
		if !Reject(w, r, fmt.Errorf("loading: %w", err)) {
			http.Error(w, "loading failed", http.StatusBadGateway)
		}
	}))
	if w := get(h, "/"); w.Code != 429 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("refused: %d %v", w.Code, w.Header())
	}
	rt.Allow("store")
	if w := get(h, "/"); w.Code != http.StatusBadGateway {
		t.Errorf("failed: %d", w.Code)
	}
}

func TestRateLimitFields(t *testing.T) {
	policy := Policy{Name: `per "user"`, Quota: 100, Window: 1500 * time.Millisecond}
	m, rt := newMiddleware(t, Config{RateLimit: func(r *http.Request, rejection *guard.Rejection) Policy {
		if r.URL.Path == "/other" {
			return Policy{}
		}
		return policy
	}})
	h := m.Handler(unserved(t))
	fields := func(target string) string {
		got := get(h, target).Header()
		return got.Get("Ratelimit-Policy") + " " + got.Get("Ratelimit")
	}
	rt.Refuse("http:*", guard.ReasonRate)
	if got, want := fields("/"), `"per \"user\"";q=100;w=2 "per \"user\"";r=0;t=1`; got != want {
		t.Errorf("fields %s, want %s", got, want)
	}
	if got := fields("/other"); got != " " {
		t.Errorf("fields without a policy: %s", got)
	}
	policy = Policy{Name: "a", Quota: -1}
	if got, want := fields("/"), `"a";q=0 "a";r=0;t=1`; got != want {
		t.Errorf("fields %s, want %s", got, want)
	}
	policy.Name = "n\u00f6"
	if got := fields("/"); got != " " {
		t.Errorf("fields with a name that no field may have: %s", got)
	}
	policy.Name = "a"
	rt.Refuse("http:*", guard.ReasonFull)
	if got := fields("/"); got != " " {
		t.Errorf("fields of an answer with 503: %s", got)
	}
}

// untouched fails the test when somebody reads it.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body of a refused request was read")
	return 0, io.EOF
}

func TestBodyIsNotRead(t *testing.T) {
	m, rt := newMiddleware(t, Config{})
	rt.Refuse("http:*", guard.ReasonFull)
	if w := serve(m.Handler(unserved(t)), httptest.NewRequest(http.MethodPost, "/", untouched{t})); w.Code != 503 {
		t.Errorf("status %d", w.Code)
	}
}

func TestWeight(t *testing.T) {
	m, rt := newMiddleware(t, Config{Weight: func(r *http.Request) int {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		return n
	}})
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, strconv.Itoa(rt.For("http:*").Snapshot().Bulkhead.InFlight))
	}))
	for n, want := range map[int]string{-1: "1", 0: "1", 1: "1", 2: "2", 7: "7"} {
		if w := get(h, fmt.Sprintf("/?n=%d", n)); w.Code != 200 || w.Body.String() != want {
			t.Errorf("weight %d took %s places, status %d", n, w.Body, w.Code)
		}
	}
	if w := get(h, "/?n=1000000"); w.Code != 503 || !strings.Contains(w.Body.String(), "too_heavy") {
		t.Errorf("a weight above the ceiling: %d %s", w.Code, w.Body)
	}
	rt.AssertIdle()
}
