package bulkhead

import (
	"testing"
	"testing/synctest"
)

// FuzzQueue is TestModelOfTheQueue for programs of bytes.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 11, 3, 0, 0, 0, 0})           // eviction
	f.Add([]byte{2, 4, 0, 11, 5, 0, 2, 1, 0, 2, 2, 0, 8, 0, 0})           // heavy ones
	f.Add([]byte{3, 0, 0, 3, 0, 0, 4, 1, 0, 6, 0, 0, 6, 0, 0, 6, 1, 0})   // nested ones
	f.Add([]byte{0, 0, 0, 10, 0, 0, 13, 1, 4, 11, 6, 0, 0, 0, 0, 0, 0})   // a pin, new settings
	f.Add([]byte{12, 3, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 0, 1}) // growth
	f.Fuzz(func(t *testing.T, data []byte) {
		program := decode(data)
		synctest.Test(t, func(t *testing.T) {
			if failure := runQueue(program); failure != "" {
				t.Error(failure)
			}
		})
	})
}

// FuzzRoom is TestModelOfTheRoom for programs of bytes.
func FuzzRoom(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 19, 60, 0, 20, 60, 0})                                 // a burst
	f.Add([]byte{0, 0, 0, 0, 0, 0, 15, 0, 1, 0, 0, 0, 19, 30, 0, 19, 30, 0, 31, 0, 4})                      // a heavy one
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 252, 0, 0, 252, 0, 0, 252, 0, 19, 0, 0, 29, 2, 0})           // overload
	f.Add([]byte{31, 0, 3, 0, 0, 0, 0, 0, 3, 0, 0, 2, 0, 0, 1, 0, 0, 0, 28, 2, 1, 31, 1, 192, 18, 1, 0, 0}) // levels, settings
	f.Fuzz(func(t *testing.T, data []byte) {
		program := decode(data)
		synctest.Test(t, func(t *testing.T) {
			if failure := runRoom(program); failure != "" {
				t.Error(failure)
			}
		})
	})
}

// decode takes three bytes for a step.
func decode(data []byte) (program []op) {
	for i := 0; i+2 < len(data) && len(program) < 300; i += 3 {
		program = append(program, op{data[i], data[i+1], data[i+2]})
	}
	return program
}
