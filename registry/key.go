package registry

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxKeyLen is the most bytes a Key may have. Keys end up in every log line,
// metric label and snapshot of their calls, so they stay short.
const MaxKeyLen = 256

// Key names one guarded operation. The usual spelling is
// "<import path>.<Type>.<Method>", as KeyOf makes it; any other text of at most
// MaxKeyLen bytes of printable characters without spaces serves as well, for
// instance "orders" or "GET:/items/{id}".
//
// Two keys with the same text are the same key: they share one bound.
type Key string

// KeyOf joins an import path, a type and a method into a key. Empty parts are
// left out, so a package-level function is KeyOf("shop/stock", "", "Reserve").
// The result is not validated: use Key.Validate where the parts come from outside.
func KeyOf(importPath, typ, method string) Key {
	parts := make([]string, 0, 3)
	for _, part := range [...]string{importPath, typ, method} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return Key(strings.Join(parts, "."))
}

// Instance returns the key of one of several instances of the same operation,
// "<key>@<name>": two clients of one interface that talk to different regions
// must not share a bound. An empty name returns k itself.
func (k Key) Instance(name string) Key {
	if name == "" {
		return k
	}
	return k + "@" + Key(name)
}

// Validate reports whether k may be used as a key. The error is a *Problem.
func (k Key) Validate() error {
	if validName(string(k), MaxKeyLen) {
		return nil
	}
	return &Problem{
		Key:     k,
		Field:   fieldKey,
		Value:   quote(string(k)),
		Allowed: "1 to 256 bytes of printable characters without spaces",
	}
}

// validName is the rule that keys and groups share. Everything that prints is
// let in, because Go identifiers and import paths may be written in any script;
// spaces, control characters and broken UTF-8 are kept out, because they would
// split log lines and rule files.
func validName(s string, maxLen int) bool {
	if s == "" || len(s) > maxLen || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		// IsPrint lets exactly one kind of space through, the ASCII one.
		if r == ' ' || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
