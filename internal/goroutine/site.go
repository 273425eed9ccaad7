package goroutine

import (
	"runtime"
	"sync"
)

// Site is where a function was called: the address that it returns to, the one its caller returns to, and that one's caller. The zero
// Site is none. Frame pointers show the compiler's wrappers too (of go statements, method values, promoted methods), which tracebacks
// leave out.
type Site struct{ PC, Outer, Beyond uintptr }

// SitesRight reports whether Here finds what the runtime's own unwinder does. It asks once.
var SitesRight = sync.OnceValue(func() bool {
	var here, want Site
	compare(&here, &want)
	return here.PC == want.PC && here.Outer == want.Outer
})

//go:noinline
func compare(here, want *Site) { hereAndUnwound(here, want) }

//go:noinline
func hereAndUnwound(here, want *Site) {
	*here = Here()
	var pcs [2]uintptr
	runtime.Callers(2, pcs[:])
	want.PC, want.Outer = pcs[0], pcs[1]
}
