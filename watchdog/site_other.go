//go:build !amd64 && !arm64

package watchdog

import "runtime"

// Here returns the Site of the function that calls it, for Mark.EnterPass: it is what a user's function calls to enter, and must not be
// inlined (go:noinline). Without frame pointers, on this platform, it takes some 230 ns.
func Here() Site {
	var pcs [2]uintptr
	runtime.Callers(3, pcs[:])             // without Callers, Here and the function that calls it
	return Site{pc: pcs[0], outer: pcs[1]} // without the compiler's wrappers
}
