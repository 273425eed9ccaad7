package httpguard

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

// The headers, in the order of Headers.
const (
	criticality = iota
	caller
	timeout
	attempt
	headers
)

const (
	maxCallerLen  = 128
	maxAttempt    = 1000
	maxTimeout    = 24 * time.Hour
	timeoutDigits = 15 // of an integer in RFC 9651
)

// inherit returns the request's context with what its headers say. The time that remains is counted from here, before
// any wait for a place.
func (m *Middleware) inherit(r *http.Request) (context.Context, context.CancelFunc) {
	ctx := r.Context()
	if s, ok := m.header(r, criticality); ok {
		if level, err := registry.ParseCriticality(s); err != nil {
			m.bad[criticality].Add(1)
		} else {
			ctx = guard.WithCriticality(ctx, level)
		}
	}
	if s, ok := m.header(r, caller); ok {
		if len(s) > maxCallerLen || registry.Key(s).Validate() != nil {
			m.bad[caller].Add(1)
		} else {
			ctx = guard.WithCaller(ctx, s)
		}
	}
	if s, ok := m.header(r, attempt); ok {
		if n, err := parseAttempt(s); err != nil {
			m.bad[attempt].Add(1)
		} else {
			ctx = guard.WithAttempt(ctx, n)
		}
	}
	if s, ok := m.header(r, timeout); ok {
		if d, err := parseTimeout(s); err != nil {
			m.bad[timeout].Add(1)
		} else {
			return context.WithTimeout(ctx, d) // never later than a deadline that is there
		}
	}
	return ctx, func() {}
}

// header returns the value of a header that is there once. One that is there more often is bad: which of them is true?
func (m *Middleware) header(r *http.Request, i int) (string, bool) {
	switch values := r.Header[m.names[i]]; len(values) {
	case 0:
		return "", false
	case 1:
		return values[0], true
	default:
		m.bad[i].Add(1)
		return "", false
	}
}

var (
	errTimeout = errors.New("httpguard: timeout must be whole milliseconds: an optional minus sign and 1 to 15 digits")
	errAttempt = errors.New("httpguard: attempt must be 1 to 1000, in digits")
)

// parseTimeout reads the time that remains: milliseconds as an integer of RFC 9651, 0 or less as nothing. More than a day
// counts as a day.
func parseTimeout(s string) (time.Duration, error) {
	negative := len(s) > 0 && s[0] == '-'
	if negative {
		s = s[1:]
	}
	if len(s) > timeoutDigits {
		return 0, errTimeout
	}
	n, err := digits(s)
	switch {
	case err != nil:
		return 0, errTimeout
	case negative:
		return 0, nil
	case n > int64(maxTimeout/time.Millisecond):
		return maxTimeout, nil
	default:
		return time.Duration(n) * time.Millisecond, nil
	}
}

func parseAttempt(s string) (int, error) {
	n, err := digits(s)
	if err != nil || n < 1 || n > maxAttempt {
		return 0, errAttempt
	}
	return int(n), nil
}

// digits reads decimal digits and nothing else: strconv alone would take a sign.
func digits(s string) (int64, error) {
	if s == "" || s[0] == '+' || s[0] == '-' {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(s, 10, 64)
}
