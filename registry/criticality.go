package registry

import "strconv"

// Criticality says how much a call matters: under overload the least important
// calls are refused first. Lower values are more important, so that comparing
// two levels compares their rank.
type Criticality uint8

const (
	// CriticalityUnset is the zero value: the call, or the spec, says nothing.
	CriticalityUnset Criticality = iota
	// CriticalPlus is for the few calls whose loss a user sees at once and badly.
	CriticalPlus
	// Critical is for calls whose loss a user sees. It is the default.
	Critical
	// SheddablePlus is for calls that may fail for minutes: batch work that retries.
	SheddablePlus
	// Sheddable is for calls that may fail for hours: prefetching, crawling.
	Sheddable
)

var criticalityNames = [...]string{
	CriticalityUnset: "unset",
	CriticalPlus:     "critical_plus",
	Critical:         "critical",
	SheddablePlus:    "sheddable_plus",
	Sheddable:        "sheddable",
}

const allowedCriticality = "critical_plus, critical, sheddable_plus or sheddable"

// ParseCriticality reads a level as annotations, rule files and headers spell
// it: "critical_plus", "critical", "sheddable_plus" or "sheddable", in lower
// case. Anything else is a *Problem, and the level returned is CriticalityUnset.
func ParseCriticality(s string) (Criticality, error) {
	for c := CriticalPlus; c <= Sheddable; c++ {
		if s == criticalityNames[c] {
			return c, nil
		}
	}
	return CriticalityUnset, &Problem{
		Field:   fieldCriticality,
		Value:   quote(s),
		Allowed: allowedCriticality,
	}
}

// String returns the level as ParseCriticality reads it, "unset" for
// CriticalityUnset and "criticality(9)" for a value that is no level.
func (c Criticality) String() string {
	if int(c) < len(criticalityNames) {
		return criticalityNames[c]
	}
	return "criticality(" + strconv.Itoa(int(c)) + ")"
}
