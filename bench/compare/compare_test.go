package compare

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/guard"
)

// Every way returns what the store returns, before and after.
func TestAllReturnTheSame(t *testing.T) {
	no := errors.New("no such item")
	s := &store{read: func(_ context.Context, id int) (item, error) {
		if id == 0 {
			return item{}, no
		}
		return item{Name: "tea"}, nil
	}}
	for name, get := range map[string]func(context.Context, int) (item, error){
		"semaphore": s.getBySemaphore, "guarded": s.getGuarded, "gobreaker": s.getByGobreaker, "breaker": s.getByBreaker,
		"failsafe": s.getByFailsafe, "or unknown": s.getOrUnknown,
	} {
		if got, err := get(t.Context(), 1); err != nil || got.Name != "tea" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		got, err := get(t.Context(), 0)
		if falls := name == "failsafe" || name == "or unknown"; falls && (err != nil || got.Name != "unknown") || !falls && !errors.Is(err, no) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, key := range []string{"shop.Store.Get", "shop.Store.Read", "shop.Store.Find"} {
		if s := guard.Default().Snapshot(); !declared(s, key) {
			t.Errorf("%s is not declared", key)
		}
	}
}

func declared(s guard.Snapshot, key string) bool {
	for _, k := range s.Keys {
		if string(k.Key) == key {
			return k.Declared
		}
	}
	return false
}

// The page shows this code, word for word.
func TestThePageShowsThisCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/compare.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	if len(blocks) != 6 {
		t.Fatalf("%d blocks of code, want 6", len(blocks))
	}
	var code strings.Builder
	for _, file := range []string{"semaphore.go", "gobreaker.go", "failsafe.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	for _, b := range blocks {
		b, _, _ = strings.Cut(b, "```")
		if !strings.Contains(code.String(), b) {
			t.Errorf("this is not in the package:\n%s", b)
		}
	}
}
