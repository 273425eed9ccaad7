package httpguard

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Policy is a rate limit or quota as clients may know it.
type Policy struct {
	// Name of the policy: printable ASCII. Empty: no policy.
	Name string
	// Quota is how many requests it allows in a Window.
	Quota int
	// Window, rounded up to whole seconds; 0 leaves it out.
	Window time.Duration
}

// set writes the fields of draft-ietf-httpapi-ratelimit-headers-12 for a policy with nothing left.
func (p Policy) set(h http.Header, after time.Duration) {
	name, ok := quote(p.Name)
	if !ok {
		return
	}
	policy := name + ";q=" + strconv.Itoa(max(0, p.Quota))
	if p.Window > 0 {
		policy += ";w=" + strconv.FormatInt(seconds(p.Window), 10)
	}
	limit := name + ";r=0"
	if after > 0 {
		limit += ";t=" + strconv.FormatInt(seconds(after), 10)
	}
	h["Ratelimit-Policy"] = []string{policy}
	h["Ratelimit"] = []string{limit}
}

// quote writes s as a string of RFC 9651, which holds printable ASCII only.
func quote(s string) (string, bool) {
	if s == "" {
		return "", false
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return "", false
		}
		if c == '"' || c == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	b.WriteByte('"')
	return b.String(), true
}
