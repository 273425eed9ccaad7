package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// paint colours text; the zero value leaves it alone.
type paint struct{ colour bool }

func (p paint) in(code, text string) string {
	if !p.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p paint) bold(text string) string   { return p.in("1", text) }
func (p paint) dim(text string) string    { return p.in("2", text) }
func (p paint) good(text string) string   { return p.in("32", text) }
func (p paint) middle(text string) string { return p.in("33", text) }
func (p paint) bad(text string) string    { return p.in("31", text) }

// byShare picks the colour for a share of 0..1 that should be 1.
func (p paint) byShare(share float64, text string) string {
	switch {
	case share >= 0.9:
		return p.good(text)
	case share >= 0.5:
		return p.middle(text)
	}
	return p.bad(text)
}

// seconds prints a duration as people write it: three digits at the most.
func seconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case d <= 0:
		return "-"
	case ms < 9.95:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// percent prints a share of 0..1. It never rounds up to 100 % or down to 0 %.
func percent(share float64) string {
	switch {
	case share <= 0:
		return "0 %"
	case share < 0.01:
		return "< 1 %"
	case share <= 0.99 || share >= 1:
		return fmt.Sprintf("%.0f %%", 100*share)
	}
	return fmt.Sprintf("%.1f %%", float64(int(1000*share))/10)
}

// times prints a factor: "10x", "2.5x".
func times(factor float64) string {
	return strconv.FormatFloat(factor, 'g', 3, 64) + "x"
}

// perSecond prints a rate.
func perSecond(rate float64) string { return fmt.Sprintf("%.0f/s", rate) }

// left and right pad text to a width of n characters; colour comes afterwards,
// it has no width.
func left(text string, n int) string  { return text + spaces(n-len([]rune(text))) }
func right(text string, n int) string { return spaces(n-len([]rune(text))) + text }

func spaces(n int) string { return strings.Repeat(" ", max(0, n)) }
