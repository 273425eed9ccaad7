// Package compare holds the code of docs/compare.md, before and after, so that it compiles and does what the page says.
package compare

import (
	"context"
	"errors"
)

// store is what is called.
type store struct {
	read func(ctx context.Context, id int) (item, error)
}

type item struct{ Name string }

var errBusy = errors.New("busy")
