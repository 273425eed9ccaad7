package httpguard

import (
	"net/http"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/guard"
)

func TestNewSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string // "" is right
	}{
		{Config{}, ""},
		{Config{Prefix: "shop:"}, ""},
		{Config{Prefix: strings.Repeat("p", maxPrefixLen)}, ""},
		{Config{Prefix: "a b"}, `httpguard: Prefix is "a b", must be at most 64 bytes of printable characters without spaces`},
		{Config{Prefix: "a\n"}, `httpguard: Prefix is "a\n", must be`},
		{Config{Prefix: strings.Repeat("p", maxPrefixLen+1)}, "must be at most 64 bytes"},
		{Config{Headers: Headers{Caller: "X-Caller"}}, ""},
		{Config{Headers: Headers{Caller: "X Caller"}}, `httpguard: header name "X Caller" must consist of letters`},
		{Config{Headers: Headers{Timeout: "X:"}}, `httpguard: header name "X:" must`},
		{Config{Headers: Headers{Timeout: "x-a", Attempt: "X-A"}}, `httpguard: header name "X-A" is used for two headers, they must differ`},
		{Config{Headers: Headers{Caller: "spillway-criticality"}}, `"Spillway-Criticality" is used for two`},
	} {
		m, err := New(c.cfg)
		switch {
		case c.want == "" && (err != nil || m == nil):
			t.Errorf("New(%+v): %v", c.cfg, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("New(%+v): %v, want %q", c.cfg, err, c.want)
		}
	}
}

func TestDefaultRuntime(t *testing.T) {
	m, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if m.cfg.Runtime != guard.Default() {
		t.Error("a Config without a runtime does not use the default one")
	}
}

func TestHandlerSaysWhatIsWrong(t *testing.T) {
	made, _ := newMiddleware(t, Config{})
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct {
		m    *Middleware
		next http.Handler
		want string
	}{
		{made, nil, "httpguard: Handler got a nil handler"},
		{&Middleware{}, ok, "httpguard: Handler of a Middleware that was not made by New"},
		{nil, ok, "httpguard: Handler of a Middleware that was not made by New"},
	} {
		func() {
			defer func() {
				if got := recover(); got != c.want {
					t.Errorf("panics with %v, want %q", got, c.want)
				}
			}()
			c.m.Handler(c.next)
		}()
	}
}
