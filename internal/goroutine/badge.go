package goroutine

import (
	"context"
	"strconv"
	"sync/atomic"
	"unsafe"
)

// Badge is a set of profiler labels that says which goroutine wears it: profiles show labels, but no goroutine's number. It is immutable,
// since goroutines and profiles keep it for as long as they like. The user's own labels are part of it, so that they stay visible.
//
// Whatever a goroutine that wore its own badge does later, it never wears another's: goroutines inherit one only when they are started, no
// context holds one, and what is put back in its place are the user's labels alone. So whoever wears a badge, and has worn its
// own before, is the goroutine whose number it tells.
type Badge struct {
	labels // first, as the runtime takes a pointer to it; our own label stands first in it

	goroutine uint64
	user      unsafe.Pointer // the label set of the user's that is part of this one, or nil
}

// badges keeps the last badge of each goroutine, or of another whose number meets it here.
var badges [1 << badgeBits]atomic.Pointer[Badge]

const badgeBits = 12

func home(goroutine uint64) *atomic.Pointer[Badge] {
	const fibonacci = 0x9E3779B97F4A7C15
	return &badges[goroutine*fibonacci>>(64-badgeBits)]
}

// Wear puts its badge on the calling goroutine, whose number it gets. It returns nil if that wears it already, or in a build whose labels
// are not known. Where the goroutine's badge was made before, with the labels it wears now, that takes 4 ns; else some 100, and one
// allocation or, with labels of the user's, two.
func Wear(goroutine uint64) *Badge {
	set, b := getLabels(), home(goroutine).Load()
	if b != nil && b.goroutine == goroutine {
		if b.user == set {
			setLabels(unsafe.Pointer(b))
			return b
		}
		if unsafe.Pointer(b) == set {
			return nil
		}
	}
	return wear(goroutine, set)
}

//go:noinline
func wear(goroutine uint64, set unsafe.Pointer) *Badge {
	if !Recognizable() {
		return nil
	}
	if b := badgeOf(set); b != nil {
		if b.goroutine == goroutine {
			return nil
		}
		set = b.user // inherited
	}
	b := home(goroutine).Load()
	if b == nil || b.goroutine != goroutine || b.user != set {
		b = newBadge(goroutine, set)
		home(goroutine).Store(b)
	}
	setLabels(unsafe.Pointer(b))
	return b
}

// Off takes the badge off the calling goroutine, if that wears it. Labels that the user's code set meanwhile, and did not take off, stay: they
// would without a badge too. A nil badge may be taken off.
func (b *Badge) Off() {
	if b != nil && getLabels() == unsafe.Pointer(b) {
		setLabels(b.user)
	}
}

// TakeOff takes its badge off the calling goroutine, if that wears one.
func TakeOff() {
	if b := badgeOf(getLabels()); b != nil && b.goroutine == ID() {
		setLabels(b.user)
	}
}

// Worn is the number on the badge that the calling goroutine wears, possibly an inherited one; 0 without any.
func Worn() uint64 {
	if b := badgeOf(getLabels()); b != nil {
		return b.goroutine
	}
	return 0
}

// BadgeLabel is the name of our label in profiles. Its value is the goroutine's number.
const BadgeLabel = "spillway"

func newBadge(goroutine uint64, user unsafe.Pointer) *Badge {
	b := new(struct {
		Badge

		own    [1]label
		digits [20]byte
	})
	b.goroutine, b.user = goroutine, user
	digits := strconv.AppendUint(b.digits[:0], goroutine, 10)
	b.own[0] = label{labelKey, unsafe.String(&digits[0], len(digits))}
	b.list = b.own[:]
	if user != nil {
		b.list = append(b.list, (*labels)(user).list...)
	}
	return &b.Badge
}

// Run calls fn on a goroutine that wears its own badge. Its frame on a stack, which is there while fn runs, says so: one that merely
// inherited a badge does not have it. Nothing else may call Run and RunContext. They may be inlined, since stacks show inlined
// calls too.
func Run(fn func() error) error { return fn() }

// RunContext is Run for a function that takes a context.
func RunContext(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }
