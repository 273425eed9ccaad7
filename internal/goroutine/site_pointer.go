//go:build amd64 || arm64

package goroutine

// Here returns the Site that the function which calls it was called from; that function must not be inlined (go:noinline). It follows
// frame pointers, in 4 ns, where runtime.Callers takes 230.
func Here() Site
