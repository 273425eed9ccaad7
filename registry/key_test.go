package registry

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestKeyOf(t *testing.T) {
	for _, tc := range []struct {
		path, typ, method string
		want              Key
	}{
		{"example.com/shop", "Store", "Get", "example.com/shop.Store.Get"},
		{"example.com/shop", "", "Reserve", "example.com/shop.Reserve"},
		{"", "Store", "Get", "Store.Get"},
		{"", "", "", ""},
	} {
		if got := KeyOf(tc.path, tc.typ, tc.method); got != tc.want {
			t.Errorf("KeyOf(%q, %q, %q) = %q, want %q", tc.path, tc.typ, tc.method, got, tc.want)
		}
	}
}

func TestKeyInstance(t *testing.T) {
	key := KeyOf("shop", "Store", "Get")
	if got := key.Instance("eu"); got != "shop.Store.Get@eu" {
		t.Errorf("Instance = %q", got)
	}
	if got := key.Instance(""); got != key {
		t.Errorf("an empty instance name gives %q, want the key itself", got)
	}
}

func TestKeyValidate(t *testing.T) {
	for _, key := range []Key{
		"a", "orders", "example.com/shop.Store.Get", "example.com/shop.Store.Get@eu",
		"GET:/items/{id}", "Lager.Größe", "店.注文", `odd"but\printable`,
		Key(strings.Repeat("k", MaxKeyLen)),
	} {
		if err := key.Validate(); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	const must = ", must be 1 to 256 bytes of printable characters without spaces"
	for _, tc := range []struct {
		key  Key
		want string
	}{
		{"", `registry: key is ""` + must},
		{"a b", `registry: key is "a b"` + must},
		{"a\tb", `registry: key is "a\tb"` + must},
		{"a\nb", `registry: key is "a\nb"` + must},
		{"a\x7f", `registry: key is "a\x7f"` + must},
		{"a\u00a0b", `registry: key is "a\u00a0b"` + must},
		{"a\u200bb", `registry: key is "a\u200bb"` + must},
		{"a\xffb", `registry: key is "a\xffb"` + must},
		{
			Key(strings.Repeat("k", MaxKeyLen+1)),
			`registry: key is "` + strings.Repeat("k", MaxKeyLen) + `"... (257 bytes)` + must,
		},
		{
			// The cut never splits a character.
			"k" + Key(strings.Repeat("ä", MaxKeyLen)),
			`registry: key is "k` + strings.Repeat("ä", MaxKeyLen/2-1) + `"... (513 bytes)` + must,
		},
	} {
		err := tc.key.Validate()
		if err == nil {
			t.Errorf("%q is let through", tc.key)
			continue
		}
		if err.Error() != tc.want {
			t.Errorf("message of %q\n got %s\nwant %s", tc.key, err, tc.want)
		}
		problem, ok := errors.AsType[*Problem](err)
		if !ok || problem.Key != tc.key || problem.Field != "key" {
			t.Errorf("%q: %+v is not the problem of this key", tc.key, problem)
		}
	}
}

// FuzzKeyValidate holds Validate against its documented rule, character by
// character, and the message against its promise of one short line.
func FuzzKeyValidate(f *testing.F) {
	for _, s := range []string{
		"", "a", "shop.Store.Get", "shop.Store.Get@eu", "a b", " ", "\n", "a\x00", "ä", "\u2028", "\xc3",
		"\ufffd", "\u00ad", strings.Repeat("k", MaxKeyLen), strings.Repeat("ä", MaxKeyLen),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := s != "" && len(s) <= MaxKeyLen && utf8.ValidString(s)
		for _, r := range s {
			want = want && unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Z, r)
		}
		err := Key(s).Validate()
		if (err == nil) != want {
			t.Fatalf("Key(%q).Validate() = %v, want valid: %t", s, err, want)
		}
		if err == nil {
			return
		}
		// Every byte may become \x00 in quotes; the rest of the sentence is fixed.
		if text := err.Error(); strings.ContainsAny(text, "\r\n") || len(text) > 4*MaxKeyLen+200 {
			t.Fatalf("the message is not one short line: %q", text)
		}
	})
}
