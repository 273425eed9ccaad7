//go:build !cgo

package pressure

const cgo = false
