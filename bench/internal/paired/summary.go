package paired

import (
	"math"
	"slices"
)

// Summary describes a sample by its median and an interval for it.
type Summary struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	// Low and High bound the median of what the sample was drawn from with 95 % confidence, whatever its distribution:
	// they are the order statistics of ranks n/2 - h and n/2 + h + 1 with h = 1.96 sqrt(n)/2, the binomial interval. Samples of
	// fewer than six values cannot give that confidence; Low and High are then the least and the greatest value.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	P10  float64 `json:"p10"`
	P90  float64 `json:"p90"`
}

// Summarize describes xs, which it leaves as it is. The summary of nothing is NaN throughout.
func Summarize(xs []float64) Summary {
	n := len(xs)
	if n == 0 {
		nan := math.NaN()
		return Summary{Median: nan, Low: nan, High: nan, P10: nan, P90: nan}
	}
	s := slices.Clone(xs)
	slices.Sort(s)

	half := 1.96 * math.Sqrt(float64(n)) / 2
	low := int(math.Round(float64(n)/2 - half)) // ranks, which count from 1
	high := int(math.Round(float64(n)/2+half) + 1)
	return Summary{
		N:      n,
		Median: quantile(s, 0.5),
		Low:    s[max(low, 1)-1],
		High:   s[min(high, n)-1],
		P10:    quantile(s, 0.1),
		P90:    quantile(s, 0.9),
	}
}

// quantile interpolates linearly between the two order statistics around q in sorted s, which is not empty: the median
// of an even number of values is the mean of the two in the middle.
func quantile(s []float64, q float64) float64 {
	at := q * float64(len(s)-1)
	i := int(at)
	if i+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}
