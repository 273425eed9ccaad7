package watchdog

import (
	"strconv"
	"strings"
)

const house = "github.com/spillway-go/spillway/"

// ours reports whether a function belongs to the packages between a caller and the guarded function.
func ours(function []byte) bool {
	if len(function) < len(house) || string(function[:len(house)]) != house {
		return false
	}
	rest := string(function[len(house):])
	part, _, _ := strings.Cut(rest, ".")
	switch part {
	case "guard", "bulkhead", "bulkhead/pool", "watchdog", "httpguard", "internal/goroutine":
		return true
	}
	return false
}

// maxFrameText bounds one line of a stack.
const maxFrameText = 512

// stacks keeps the distinct stacks of a dump, trimmed, within a number of bytes.
type stacks struct {
	maxFrames, maxBytes int

	bytes int
	index map[string]int
	list  [][]string
	buf   []byte
}

// keep returns the index of the trimmed stack, -1 if there is no room for it. Trimmed are our own frames, and the runtime's at the
// outer end; those at the inner end are not in the profile's text. One line is "main.work /src/shop/work.go:41".
func (s *stacks) keep(frames []frame) int {
	for len(frames) > 0 && strings.HasPrefix(string(frames[len(frames)-1].function), "runtime.") {
		frames = frames[:len(frames)-1]
	}
	s.buf = s.buf[:0]
	shown, left := 0, 0
	for i := range frames {
		switch f := &frames[i]; {
		case ours(f.function):
		case shown == s.maxFrames:
			left++
		default:
			shown++
			start := len(s.buf)
			s.buf = append(append(append(s.buf, f.function...), ' '), f.place...)
			if len(s.buf)-start > maxFrameText {
				s.buf = append(s.buf[:start+maxFrameText], "..."...)
			}
			s.buf = append(s.buf, '\n')
		}
	}
	if left > 0 {
		s.buf = append(append(append(s.buf, "... "...), strconv.Itoa(left)...), " more frames\n"...)
	}
	if i, ok := s.index[string(s.buf)]; ok {
		return i
	}
	if s.bytes+len(s.buf) > s.maxBytes {
		return -1
	}
	if s.index == nil {
		s.index = map[string]int{}
	}
	text := string(s.buf)
	s.bytes += len(text)
	s.index[text] = len(s.list)
	s.list = append(s.list, strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
	return len(s.list) - 1
}

// at returns a stack that keep numbered.
func (s *stacks) at(i int) []string {
	if i < 0 {
		return nil
	}
	return s.list[i]
}
