package registry

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Problem is one thing that is wrong with a key or a spec: where it stands, what
// it says and what it may say.
type Problem struct {
	// Key is the key whose spec is wrong; empty when a spec is judged by itself.
	Key Key
	// Field is the wrong field in the words of annotations and rule files: limit,
	// expand, stale, wait, queue, group, slow, timeout, floor, criticality; or key
	// when the key itself is wrong.
	Field string
	// Value is what the field says, printed as people write it; text is quoted.
	Value string
	// Allowed completes the sentence "<field> must be ...".
	Allowed string
}

// Error returns one sentence, for instance
//
//	registry: key "shop.Store.Get": limit is -1, must be 1 to 250000
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString("registry: ")
	// A wrong key is the field itself; naming it twice would only be longer.
	if p.Key != "" && p.Field != fieldKey {
		b.WriteString("key " + quote(string(p.Key)) + ": ")
	}
	b.WriteString(p.Field + " is " + p.Value + ", must be " + p.Allowed)
	return b.String()
}

// The fields of a spec in the words of annotations and rule files.
const (
	fieldKey         = "key"
	fieldLimit       = "limit"
	fieldExpand      = "expand"
	fieldStale       = "stale"
	fieldWait        = "wait"
	fieldQueue       = "queue"
	fieldGroup       = "group"
	fieldSlow        = "slow"
	fieldTimeout     = "timeout"
	fieldFloor       = "floor"
	fieldCriticality = "criticality"
	fieldBreaker     = "breaker"
	fieldRate        = "rate"
	fieldThrottle    = "throttle"
)

// maxQuoted is how much of a text a message repeats: a key that is wrong because
// it is a megabyte long must not make the message a megabyte long.
const maxQuoted = MaxKeyLen

// quote prints text that came from outside, so that it stays on one line.
func quote(s string) string {
	if len(s) <= maxQuoted {
		return strconv.Quote(s)
	}
	cut := maxQuoted
	for cut > maxQuoted-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "... (" + strconv.Itoa(len(s)) + " bytes)"
}
