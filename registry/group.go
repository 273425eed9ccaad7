package registry

import (
	"errors"
	"maps"
	"slices"
)

// disagreements reports which of the filled specs, if they took effect, would
// give a group two different bounds. The caller holds mu.
func (r *Registry) disagreements(specs map[Key]Spec) error {
	var problems []error
	anchors := make(map[string]Key)
	for _, key := range slices.Sorted(maps.Keys(specs)) {
		s := specs[key]
		if s.Group == "" {
			continue
		}
		anchor, ok := anchors[s.Group]
		if !ok {
			anchor = r.anchor(s.Group, key, specs)
			anchors[s.Group] = anchor
		}
		other, changing := specs[anchor]
		if !changing {
			other = r.specs[anchor]
		}
		want, got := other.fields(), s.fields()
		for i, f := range got[:sharedFields] {
			if f.value != want[i].value {
				problems = append(problems, &Problem{
					Key:   key,
					Field: f.name,
					Value: f.value,
					Allowed: want[i].value + " as for key " + quote(string(anchor)) +
						" of the same group " + quote(s.Group),
				})
			}
		}
	}
	return errors.Join(problems...)
}

// anchor returns the key that the members of a group are compared with: the first
// that stays as it is, because the caller did not mention it and a message about
// it explains the most; else first, the first that is about to change.
func (r *Registry) anchor(group string, first Key, specs map[Key]Spec) Key {
	anchor, found := first, false
	for key := range r.groups[group] {
		if _, changing := specs[key]; !changing && (!found || key < anchor) {
			anchor, found = key, true
		}
	}
	return anchor
}

// joinGroup notes a member of a group. The caller holds mu.
func (r *Registry) joinGroup(key Key, group string) {
	if group == "" {
		return
	}
	members := r.groups[group]
	if members == nil {
		members = make(map[Key]struct{})
		r.groups[group] = members
	}
	members[key] = struct{}{}
}

// leaveGroup forgets a member and, with the last one, the group, so that a group
// may come back later with another bound. The caller holds mu.
func (r *Registry) leaveGroup(key Key, group string) {
	if group == "" {
		return
	}
	delete(r.groups[group], key)
	if len(r.groups[group]) == 0 {
		delete(r.groups, group)
	}
}
