package registry

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// directive is one row of the table of annotations: its name, the word without a name, the words with one.
type directive struct {
	name    string
	main    option
	options []option
	off     bool        // "off" may stand in place of all words
	on      func(*Spec) // what the name alone says; nil where it says nothing
	needs   string      // completes "is empty, must be"
}

func (d *directive) names() string {
	names := make([]string, 0, len(d.options))
	for _, o := range d.options {
		names = append(names, o.name+"=")
	}
	switch {
	case len(names) == 0:
		return "left out: " + d.name + " takes one word"
	case len(names) == 1:
		return names[0]
	default:
		return "one of " + strings.Join(names, ", ")
	}
}

// option is one word. parse sets a field of s, or returns what would be allowed and leaves s alone.
type option struct {
	name  string
	field string // in messages, as Spec.Validate has it
	parse func(s *Spec, value string) (allowed string)
}

var directives = []directive{
	{
		name: "limit",
		main: option{field: fieldLimit, parse: whole(func(s *Spec) *int { return &s.Limit }, 1, MaxLimit)},
		options: []option{
			{"expand", fieldExpand, whole(func(s *Spec) *int { return &s.Expand }, 1, MaxExpand)},
			{"stale", fieldStale, span(func(s *Spec) *time.Duration { return &s.Stale }, minStale, maxStale)},
			{"wait", fieldWait, span(func(s *Spec) *time.Duration { return &s.Wait }, 0, maxWait)},
			{"queue", fieldQueue, whole(func(s *Spec) *int { return &s.Queue }, 0, MaxQueue)},
			{"group", fieldGroup, naming(func(s *Spec) *string { return &s.Group })},
			hold,
		},
		needs: "1 to 250000, or one of expand=, stale=, wait=, queue=, group=, hold=",
	},
	{
		name:  "slow",
		main:  option{field: fieldSlow, parse: span(func(s *Spec) *time.Duration { return &s.Slow }, minSlow, maxSlow)},
		needs: "a time such as 2s, 1ms to 1h",
	},
	{
		name: "timeout",
		main: option{field: fieldTimeout, parse: span(func(s *Spec) *time.Duration { return &s.Timeout }, minTimeout, maxTimeout)},
		options: []option{
			{"floor", fieldFloor, span(func(s *Spec) *time.Duration { return &s.Floor }, 0, maxTimeout)},
			hold,
		},
		off:   true,
		needs: "a time such as 800ms, 1ms to 1h, or floor= or hold=",
	},
	{
		name: "breaker",
		options: []option{
			{"ratio", "breaker ratio", decimal(func(s *Spec) *float64 { return &s.Breaker.Ratio }, "a number such as 0.5, above 0 and at most 1")},
			{"min", "breaker min", whole(func(s *Spec) *int { return &s.Breaker.Min }, 1, maxBreakerMin)},
			{"window", "breaker window", span(func(s *Spec) *time.Duration { return &s.Breaker.Window }, minBreakerWindow, maxBreakerTime)},
			{"open", "breaker open", span(func(s *Spec) *time.Duration { return &s.Breaker.Open }, minBreakerTime, maxBreakerTime)},
			{"probes", "breaker probes", whole(func(s *Spec) *int { return &s.Breaker.Probes }, 1, maxBreakerProbes)},
			{"slow", "breaker slow", span(func(s *Spec) *time.Duration { return &s.Breaker.Slow }, 0, maxBreakerTime)},
		},
		off: true,
		on:  func(s *Spec) { s.Breaker.On = true },
	},
	{
		name: "throttle",
		options: []option{
			{"k", "throttle k", decimal(func(s *Spec) *float64 { return &s.Throttle.K }, "a number such as 2, above 1 and at most 100")},
			{"window", "throttle window", span(func(s *Spec) *time.Duration { return &s.Throttle.Window }, minBreakerWindow, maxBreakerTime)},
		},
		off: true,
		on:  func(s *Spec) { s.Throttle.On = true },
	},
	{
		name: "load",
		options: []option{
			{"cpu", "load cpu", band(func(s *Spec) *Band { return &s.Load.CPU }, maxPercent)},
			{"latency", "load latency", parseLatency},
			{"load", fieldLoadLoad, band(func(s *Spec) *Band { return &s.Load.Load }, maxLoad)},
			{"memory", "load memory", band(func(s *Spec) *Band { return &s.Load.Memory }, maxPercent)},
			{"algorithm", "load algorithm", oneOf(func(s *Spec) *string { return &s.Load.Algorithm }, allowedLoad, AdaptiveLoad, DynamicLoad, BBRLoad)},
		},
		off: true,
		on:  func(s *Spec) { s.Load.On = true },
	},
	{
		name: "rate",
		main: option{field: fieldRate, parse: parseRate},
		options: []option{
			{"burst", "rate burst", whole(func(s *Spec) *int { return &s.Rate.Burst }, 1, maxRateCalls)},
			{"algorithm", "rate algorithm", oneOf(func(s *Spec) *string { return &s.Rate.Algorithm }, allowedRate, TokenBucket, LeakyBucket, SlidingWindow, FixedWindow)},
			{"by", "rate by", oneOf(func(s *Spec) *string { return &s.Rate.By }, ByCaller, ByCaller)},
		},
		off:   true,
		needs: rateForm,
	},
	{
		name: "criticality",
		main: option{field: fieldCriticality, parse: func(s *Spec, value string) string {
			c, err := ParseCriticality(value)
			if err != nil {
				return allowedCriticality
			}
			s.Criticality = c
			return ""
		}},
		needs: allowedCriticality,
	},
	{
		name:    "pool",
		main:    option{field: fieldPool, parse: whole(func(s *Spec) *int { return &s.Pool.Size }, 1, maxPoolTasks)},
		options: []option{{"queue", "pool queue", whole(func(s *Spec) *int { return &s.Pool.Queue }, 0, maxPoolTasks)}},
		off:     true,
		needs:   "1 to " + strconv.Itoa(maxPoolTasks),
	},
}

// hold stands behind limit, whose place it holds, and behind timeout, whose deadline it holds.
var hold = option{"hold", fieldHold, oneOf(func(s *Spec) *string { return &s.Hold }, allowedHold, HoldClose, HoldRange)}

var (
	wholeForm   = regexp.MustCompile(`^-?[0-9]+$`)
	decimalForm = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
	rateParts   = regexp.MustCompile(`^([0-9]+)/([^/]+)$`)
)

const (
	rateForm    = "calls and a time such as 100/s or 5/10m, 1 to 10000000 calls in 1ms to 8784h"
	allowedRate = "token, leaky, sliding or fixed"
)

// whole reads a whole number. Where 0 is not in the range it is refused, since in a Spec it would mean the default.
func whole(at func(*Spec) *int, low, high int) func(*Spec, string) string {
	return func(s *Spec, value string) string {
		allowed := strconv.Itoa(low) + " to " + strconv.Itoa(high)
		n, err := strconv.Atoi(value)
		switch {
		case !wholeForm.MatchString(value):
			return "a whole number, " + allowed
		case err != nil || n < low || n > high:
			return allowed
		}
		*at(s) = n
		return ""
	}
}

// span reads a time.
func span(at func(*Spec) *time.Duration, low, high time.Duration) func(*Spec, string) string {
	return func(s *Spec, value string) string {
		allowed := formatDuration(low) + " to " + formatDuration(high)
		d, ok := parseTime(value)
		switch {
		case !ok:
			return "a time with its unit, such as 800ms or 60s, " + allowed
		case d < low || d > high:
			return allowed
		}
		*at(s) = d
		return ""
	}
}

// parseTime is time.ParseDuration without a sign that people do not write.
func parseTime(value string) (time.Duration, bool) {
	d, err := time.ParseDuration(value)
	return d, err == nil && !strings.HasPrefix(value, "+")
}

// decimal reads a number with or without a fraction; its range is for the spec to check, except that 0 would mean the default.
func decimal(at func(*Spec) *float64, allowed string) func(*Spec, string) string {
	return func(s *Spec, value string) string {
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || f == 0 || !decimalForm.MatchString(value) {
			return allowed
		}
		*at(s) = f
		return ""
	}
}

// band reads two numbers; their range is for the spec to check.
func band(at func(*Spec) *Band, high int) func(*Spec, string) string {
	return func(s *Spec, value string) string {
		from, to, _ := strings.Cut(value, "..")
		low, errLow := strconv.ParseFloat(from, 64)
		top, errTop := strconv.ParseFloat(to, 64)
		if errLow != nil || errTop != nil || !decimalForm.MatchString(from) || !decimalForm.MatchString(to) || low == 0 {
			return allowedBand(high)
		}
		*at(s) = Band{low, top}
		return ""
	}
}

func parseLatency(s *Spec, value string) string {
	from, to, _ := strings.Cut(value, "..")
	low, okLow := parseTime(from)
	high, okHigh := parseTime(to)
	if !okLow || !okHigh || low == 0 {
		return allowedLatency
	}
	s.Load.Latency = DurationBand{low, high}
	return ""
}

// parseRate reads "100/s" and "5/10m".
func parseRate(s *Spec, value string) string {
	parts := rateParts.FindStringSubmatch(value)
	if parts == nil {
		return rateForm
	}
	per := parts[2]
	if per[0] < '0' || per[0] > '9' {
		per = "1" + per
	}
	calls, err := strconv.Atoi(parts[1])
	d, ok := parseTime(per)
	if err != nil || !ok || calls < 1 || calls > maxRateCalls || d < minRatePer || d > maxRatePer {
		return rateForm
	}
	s.Rate.Calls, s.Rate.Per = calls, d
	return ""
}

// oneOf reads one of a few words.
func oneOf(at func(*Spec) *string, allowed string, among ...string) func(*Spec, string) string {
	return func(s *Spec, value string) string {
		for _, w := range among {
			if w == value {
				*at(s) = w
				return ""
			}
		}
		return allowed
	}
}

// naming reads a name. Quotes are refused, though a name made by Go code may have them: who writes them means what is between.
func naming(at func(*Spec) *string) func(*Spec, string) string {
	return func(s *Spec, value string) string {
		if !validName(value, MaxGroupLen) || strings.ContainsAny(value, "\"'`\\") {
			return "1 to 64 bytes of printable characters without spaces and quotes"
		}
		*at(s) = value
		return ""
	}
}
