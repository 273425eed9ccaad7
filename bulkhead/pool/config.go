package pool

import (
	"errors"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/registry"
)

// MaxTasks is the greatest Size and Queue.
const MaxTasks = 1_000_000

// DefaultIdle is Config.Idle where it is not set.
const DefaultIdle = 10 * time.Second

// Config are the settings of a Pool. The zero Config is that of the package's functions.
type Config struct {
	// Size is how many tasks run at once, all keys together, 1 to MaxTasks. 0: as many as the bounds of the keys allow.
	Size int
	// Queue is how many accepted tasks wait for one of Size to end, in the order in which they came, 0 to MaxTasks. They hold
	// their places meanwhile. It must be 0 without a Size.
	Queue int
	// Idle is after how long a goroutine without work ends, 100 ms to 1 h, kept to within as much again. 0: DefaultIdle.
	Idle time.Duration
	// OnPanic is told of every panic of a task, after its waiters, on the goroutine where it happened. Any number may run at once; a panic
	// of its own goes to the log. Nil writes the first panic of every second to log/slog's default logger, with its stack and the number
	// of those that were left out before.
	OnPanic func(key registry.Key, err *PanicError)
}

func (c Config) withDefaults() Config {
	if c.Idle == 0 {
		c.Idle = DefaultIdle
	}
	return c
}

func (c Config) validate() error {
	var list []error
	if c.Size < 0 || c.Size > MaxTasks {
		list = append(list, fmt.Errorf("pool: Size is %d, must be 0 to %d", c.Size, MaxTasks))
	}
	switch {
	case c.Queue < 0 || c.Queue > MaxTasks:
		list = append(list, fmt.Errorf("pool: Queue is %d, must be 0 to %d", c.Queue, MaxTasks))
	case c.Queue > 0 && c.Size == 0:
		list = append(list, fmt.Errorf("pool: Queue is %d, must be 0 without a Size", c.Queue))
	}
	if c.Idle < 100*time.Millisecond || c.Idle > time.Hour {
		list = append(list, fmt.Errorf("pool: Idle is %v, must be 100ms to 1h", c.Idle))
	}
	return errors.Join(list...)
}
