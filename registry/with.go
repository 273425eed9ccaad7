package registry

import (
	"errors"
	"slices"
	"strings"
)

// Directives returns the names that With knows, in the order of the documentation: limit, slow, timeout, ...
func Directives() []string {
	names := make([]string, len(directives))
	for i, d := range directives {
		names[i] = d.name
	}
	return names
}

// With reads one line of a spec as annotations and rule files write it: the directive limit with the text "20 wait=50ms" sets Limit and
// Wait. Words are separated by spaces or tabs. What the text does not mention is as in s, so that a spec is built from the zero
// Spec by one With for each of its directives. The word "off" behind a directive whose default is none sets nothing.
//
// Everything that is wrong comes back at once, as an errors.Join of *Problem that say where in the text, with s.
func (s Spec) With(name, text string) (Spec, error) {
	i := slices.IndexFunc(directives, func(d directive) bool { return d.name == name })
	if i < 0 {
		return s, errors.Join(&Problem{Field: "directive", Value: quote(name), Allowed: "one of " + strings.Join(Directives(), ", ")})
	}
	r := reader{directive: &directives[i], text: text, seen: map[string]word{}}
	// The spec of this line alone: what other lines set wrong is theirs to tell.
	line := Spec{}
	r.read(&line)
	if len(r.problems) == 0 && !r.off {
		r.check(line)
	}
	if w, ok := r.seen["hold"]; ok && s.Hold != "" && s.Hold != line.Hold && len(r.problems) == 0 {
		r.add(w, fieldHold, quote(line.Hold), s.Hold+" as it was said before")
	}
	if len(r.problems) > 0 {
		return s, errors.Join(r.problems...)
	}
	for _, w := range r.seen {
		w.option.parse(&s, w.value)
	}
	if r.directive.on != nil && !r.off {
		r.directive.on(&s)
	}
	return s, nil
}

// word is one word of a text: "20" or "wait=50ms".
type word struct {
	text       string
	start, end int
	option     *option
	value      string
}

// words splits at ASCII spaces and tabs. Other spaces are part of a word, and wrong there: nobody sees them.
func words(text string) []word {
	var list []word
	for start := 0; start < len(text); {
		if text[start] == ' ' || text[start] == '\t' {
			start++
			continue
		}
		end := start + strings.IndexAny(text[start:]+" ", " \t")
		list = append(list, word{text: text[start:end], start: start, end: end})
		start = end
	}
	return list
}

// reader reads one line.
type reader struct {
	directive *directive
	text      string
	seen      map[string]word // by option
	off       bool
	problems  []error
}

func (r *reader) read(s *Spec) {
	list := words(r.text)
	for i, w := range list {
		if strings.HasPrefix(w.text, "//") {
			w.end = len(r.text)
			r.add(w, r.directive.name+" comment", quote(r.text[w.start:]), "on a line of its own")
			return
		}
		if w.text == "off" && r.directive.off {
			r.off = true
			if len(list) > 1 {
				other := list[(i+1)%len(list)]
				r.add(other, r.directive.name, quote(other.text), "left out beside off")
			}
			return
		}
		r.readWord(s, w, i == 0)
	}
	if len(list) == 0 && r.directive.on == nil {
		r.add(word{end: len(r.text)}, r.directive.name, "empty", r.directive.needs)
	}
}

// readWord reads a word and notes in s what it sets.
func (r *reader) readWord(s *Spec, w word, first bool) {
	d := r.directive
	name, value, named := strings.Cut(w.text, "=")
	var field string
	switch {
	case named:
		i := slices.IndexFunc(d.options, func(o option) bool { return o.name == name })
		if i < 0 {
			r.add(w, d.name+" option", quote(w.text), d.names())
			return
		}
		w.option, w.value = &d.options[i], value
		field = w.option.field
	case d.main.parse != nil && first:
		name, field = "", d.main.field
		w.option, w.value = &d.main, w.text
	default:
		r.add(w, d.name+" option", quote(w.text), d.names())
		return
	}
	if _, twice := r.seen[name]; twice {
		r.add(w, field, quote(w.text), "given once")
		return
	}
	r.seen[name] = w
	if allowed := w.option.parse(s, w.value); allowed != "" {
		if named {
			w.start += len(name) + 1
		}
		r.add(w, field, valueText(w.value), allowed)
	}
}

// check says what is wrong between the words of a line that can each be read.
func (r *reader) check(s Spec) {
	if r.directive.on != nil {
		r.directive.on(&s)
	}
	for _, err := range s.problems("") {
		p, _ := errors.AsType[*Problem](err)
		at := word{end: len(r.text)}
		for _, w := range r.seen {
			if w.option.field == p.Field {
				at = w
			}
		}
		r.add(at, p.Field, p.Value, p.Allowed)
	}
}

func (r *reader) add(w word, field, value, allowed string) {
	r.problems = append(r.problems, &Problem{Field: field, Value: value, Allowed: allowed, Start: w.start, End: w.end})
}

func valueText(s string) string {
	if s == "" {
		return "empty"
	}
	return quote(s)
}
