package registry

import (
	"errors"
	"strconv"
	"time"
)

// field is one field of a spec as people read it.
type field struct{ name, value string }

// sharedFields is how many of the leading fields describe the bound itself;
// keys of one group must agree on them.
const sharedFields = 5

// fields lists a spec in the order of the annotation table. Messages, String and
// comparisons all read this list, so they cannot disagree about a name.
func (s Spec) fields() [13]field {
	return [...]field{
		{fieldLimit, strconv.Itoa(s.Limit)},
		{fieldExpand, strconv.Itoa(s.Expand)},
		{fieldStale, formatDuration(s.Stale)},
		{fieldWait, formatDuration(s.Wait)},
		{fieldQueue, strconv.Itoa(s.Queue)},
		{fieldGroup, s.Group},
		{fieldSlow, formatDuration(s.Slow)},
		{fieldTimeout, formatDuration(s.Timeout)},
		{fieldFloor, formatDuration(s.Floor)},
		{fieldCriticality, s.Criticality.String()},
		{fieldBreaker, s.Breaker.String()},
		{fieldThrottle, s.Throttle.String()},
		{fieldRate, s.Rate.String()},
	}
}

// Validate reports everything that is wrong with s at once, as an errors.Join of
// *Problem in the order of the fields. An unset field is always right.
func (s Spec) Validate() error {
	return errors.Join(s.problems("")...)
}

func (s Spec) problems(key Key) []error {
	c := checker{key: key}
	c.number(fieldLimit, s.Limit, 1, MaxLimit)
	c.number(fieldExpand, s.Expand, 1, MaxExpand)
	c.duration(fieldStale, s.Stale, minStale, maxStale)
	c.duration(fieldWait, s.Wait, 0, maxWait)
	c.number(fieldQueue, s.Queue, 0, MaxQueue)
	if s.Wait == 0 && s.Queue > 0 && s.Queue <= MaxQueue {
		c.add(fieldQueue, strconv.Itoa(s.Queue), "0 without a wait: nobody would wait there")
	}
	if s.Group != "" && !validName(s.Group, MaxGroupLen) {
		c.add(fieldGroup, quote(s.Group), "at most 64 bytes of printable characters without spaces")
	}
	c.duration(fieldSlow, s.Slow, minSlow, maxSlow)
	timeoutFine := c.duration(fieldTimeout, s.Timeout, minTimeout, maxTimeout)
	switch {
	case s.Timeout == 0 || !timeoutFine:
		// A wrong timeout has its own sentence; measuring the floor by it would
		// only add a second one about the same slip.
		c.duration(fieldFloor, s.Floor, 0, maxFloor)
	case s.Floor < 0 || s.Floor > s.Timeout:
		c.add(fieldFloor, formatDuration(s.Floor), "0 to the timeout, "+formatDuration(s.Timeout))
	}
	if s.Criticality > Sheddable {
		c.add(fieldCriticality, s.Criticality.String(), allowedCriticality)
	}
	s.Breaker.check(&c)
	s.Throttle.check(&c)
	s.Rate.check(&c)
	return c.found
}

// checker gathers the problems of one spec.
type checker struct {
	key   Key
	found []error
}

func (c *checker) add(name, value, allowed string) {
	c.found = append(c.found, &Problem{Key: c.key, Field: name, Value: value, Allowed: allowed})
}

func (c *checker) number(name string, v, low, high int) {
	if v != 0 && (v < low || v > high) {
		c.add(name, strconv.Itoa(v), strconv.Itoa(low)+" to "+strconv.Itoa(high))
	}
}

func (c *checker) duration(name string, v, low, high time.Duration) bool {
	fine := v == 0 || (v >= low && v <= high)
	if !fine {
		c.add(name, formatDuration(v), formatDuration(low)+" to "+formatDuration(high))
	}
	return fine
}
