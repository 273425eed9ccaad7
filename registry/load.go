package registry

import (
	"strconv"
	"time"
)

// Algorithms of a Load, as annotations spell them.
const (
	AdaptiveLoad = "adaptive" // finds the limit by itself
	DynamicLoad  = "dynamic"  // holds what is measured inside its bands
	BBRLoad      = "bbr"      // best throughput times response time, while the machine is busy
)

const (
	maxPercent     = 100
	maxLoad        = 100_000
	minBandLatency = 100 * time.Microsecond
	maxBandLatency = time.Hour
)

// Load says how a key's calls are limited by how loaded the process is. The zero Load is no limit; On, an algorithm or a band switches it on.
type Load struct {
	// On switches the limit on with its defaults.
	On bool
	// Algorithm is AdaptiveLoad, DynamicLoad or BBRLoad. Default: DynamicLoad where there is a band, else AdaptiveLoad.
	Algorithm string
	// CPU is the band for the use of the processors in percent: above 0 to 100.
	CPU Band
	// Latency is the band for the response time: 100us to 1h.
	Latency DurationBand
	// Load is the band for the load average: above 0 to 100,000.
	Load Band
	// Memory is the band for the use of memory in percent: above 0 to 100.
	Memory Band
}

// Band is where a figure may settle: healthy below Low, bad above High. The zero Band is none.
type Band struct{ Low, High float64 }

// DurationBand is a Band of times.
type DurationBand struct{ Low, High time.Duration }

// String prints a band as "70..90", "" for none.
func (b Band) String() string {
	if b == (Band{}) {
		return ""
	}
	return strconv.FormatFloat(b.Low, 'g', -1, 64) + ".." + strconv.FormatFloat(b.High, 'g', -1, 64)
}

// String prints a band as "140ms..200ms", "" for none.
func (b DurationBand) String() string {
	if b == (DurationBand{}) {
		return ""
	}
	return formatDuration(b.Low) + ".." + formatDuration(b.High)
}

func (l Load) banded() bool {
	return l.CPU != (Band{}) || l.Latency != (DurationBand{}) || l.Load != (Band{}) || l.Memory != (Band{})
}

func (l Load) withDefaults() Load {
	if l == (Load{}) {
		return l
	}
	l.On = true
	if l.banded() {
		fill(&l.Algorithm, DynamicLoad)
	}
	fill(&l.Algorithm, AdaptiveLoad)
	return l
}

// String prints what is set as "cpu:70..90,algorithm:dynamic"; "" for none.
func (l Load) String() string {
	if l == (Load{}) {
		return ""
	}
	var parts list
	parts.add(l.CPU != (Band{}), "cpu", l.CPU.String())
	parts.add(l.Latency != (DurationBand{}), "latency", l.Latency.String())
	parts.add(l.Load != (Band{}), "load", l.Load.String())
	parts.add(l.Memory != (Band{}), "memory", l.Memory.String())
	parts.add(l.Algorithm != "", "algorithm", l.Algorithm)
	return parts.orOn()
}

func (l Load) check(c *checker) {
	c.band("load cpu", l.CPU, maxPercent)
	if b := l.Latency; b != (DurationBand{}) && (b.Low < minBandLatency || b.Low >= b.High || b.High > maxBandLatency) {
		c.add("load latency", b.String(), allowedLatency)
	}
	c.band(fieldLoadLoad, l.Load, maxLoad)
	c.band("load memory", l.Memory, maxPercent)
	switch l.Algorithm {
	case "":
	case AdaptiveLoad, BBRLoad:
		if l.banded() {
			c.add("load algorithm", quote(l.Algorithm), "dynamic where there are bands")
		}
	case DynamicLoad:
		if !l.banded() {
			c.add("load algorithm", quote(l.Algorithm), "adaptive or bbr without a band")
		}
	default:
		c.add("load algorithm", quote(l.Algorithm), allowedLoad)
	}
}

const (
	allowedLoad    = "adaptive, dynamic or bbr"
	allowedLatency = "two times such as 140ms..200ms, the first one less, 100us to 1h"
)

func allowedBand(high int) string {
	return "two numbers such as 70..90, the first one less, above 0 and at most " + strconv.Itoa(high)
}

func (c *checker) band(name string, b Band, high int) {
	// Written so that NaN is wrong.
	if b != (Band{}) && !(b.Low > 0 && b.Low < b.High && b.High <= float64(high)) {
		c.add(name, b.String(), allowedBand(high))
	}
}
