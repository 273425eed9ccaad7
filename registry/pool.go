package registry

import "strconv"

// maxPoolTasks is pool.MaxTasks of package bulkhead/pool.
const maxPoolTasks = 1_000_000

// Pool says that generated code runs the method on goroutines of a pool, so that who waits for it may leave. The zero Pool is none: the
// method runs on the caller's goroutine. It is read where the wrapper is made; a spec that is replaced later does not move a method.
type Pool struct {
	// Size is how many calls run at once: 1 to 1,000,000.
	Size int
	// Queue is how many accepted calls wait for one of Size to end: up to 1,000,000, and only with a Size. Default: none.
	Queue int
}

// String prints what is set as "64,queue:10"; "" for none.
func (p Pool) String() string {
	if p == (Pool{}) {
		return ""
	}
	text := strconv.Itoa(p.Size)
	if p.Queue != 0 {
		text += ",queue:" + strconv.Itoa(p.Queue)
	}
	return text
}

func (p Pool) check(c *checker) {
	if p == (Pool{}) {
		return
	}
	if p.Size < 1 || p.Size > maxPoolTasks {
		c.add("pool", strconv.Itoa(p.Size), "1 to "+strconv.Itoa(maxPoolTasks))
	}
	c.number("pool queue", p.Queue, 0, maxPoolTasks)
}

// What a Hold can be.
const (
	HoldClose = "close" // until the result is closed
	HoldRange = "range" // while the result is ranged over
)

const allowedHold = "close or range"
