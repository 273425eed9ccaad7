package registry

import (
	"testing"
	"time"
)

func TestGroupMembersAgree(t *testing.T) {
	shared := Spec{Limit: 20, Expand: 2, Stale: time.Second, Wait: time.Second, Queue: 5, Group: "db"}
	const as = ` as for key "shop.Store.Get" of the same group "db"`
	for _, tc := range []struct {
		name   string
		change func(*Spec)
		want   string
	}{
		{"limit", func(s *Spec) { s.Limit = 30 }, "limit is 30, must be 20" + as},
		{"expand", func(s *Spec) { s.Expand = 1 }, "expand is 1, must be 2" + as},
		{"stale", func(s *Spec) { s.Stale = time.Minute }, "stale is 60s, must be 1s" + as},
		{"wait", func(s *Spec) { s.Wait = time.Millisecond }, "wait is 1ms, must be 1s" + as},
		{"queue", func(s *Spec) { s.Queue = 6 }, "queue is 6, must be 5" + as},
		{"default queue", func(s *Spec) { s.Queue = 0 }, "queue is 20, must be 5" + as},
		{"slow", func(s *Spec) { s.Slow = time.Minute }, ""},
		{"timeout", func(s *Spec) { s.Timeout = time.Minute }, ""},
		{"floor", func(s *Spec) { s.Floor = time.Second }, ""},
		{"criticality", func(s *Spec) { s.Criticality = Sheddable }, ""},
		{"another group", func(s *Spec) { s.Limit, s.Group = 30, "cache" }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			other := shared
			tc.change(&other)
			for _, verb := range []string{"Declare", "Replace"} {
				r := New()
				mustDeclare(t, r, "shop.Store.Get", shared)
				var err error
				if verb == "Declare" {
					err = r.Declare("shop.Store.Put", other)
				} else {
					err = r.Replace(map[Key]Spec{"shop.Store.Put": other})
				}
				switch {
				case tc.want == "" && err != nil:
					t.Errorf("%s: %v", verb, err)
				case tc.want != "" && (err == nil || err.Error() != `registry: key "shop.Store.Put": `+tc.want):
					t.Errorf("%s\n got %v\nwant %s", verb, err, tc.want)
				}
				if _, declared := r.Lookup("shop.Store.Put"); declared != (tc.want == "") {
					t.Errorf("%s: declared is %t", verb, declared)
				}
			}
		})
	}
}

func TestGroupChangesTogether(t *testing.T) {
	r := New()
	for _, key := range []Key{"a", "b", "c"} {
		mustDeclare(t, r, key, Spec{Limit: 10, Group: "db"})
	}
	err := r.Replace(map[Key]Spec{"a": {Limit: 20, Group: "db"}, "b": {Limit: 20, Group: "db"}})
	const want = `registry: key "a": limit is 20, must be 10 as for key "c" of the same group "db"
registry: key "b": limit is 20, must be 10 as for key "c" of the same group "db"`
	if err == nil || err.Error() != want {
		t.Errorf("one member left behind\n got %v\nwant %s", err, want)
	}
	err = r.Replace(map[Key]Spec{"a": {Limit: 20, Group: "db"}, "b": {Limit: 30, Group: "db"}, "c": {Limit: 20, Group: "db"}})
	const apart = `registry: key "b": limit is 30, must be 20 as for key "a" of the same group "db"`
	if err == nil || err.Error() != apart {
		t.Errorf("members apart\n got %v\nwant %s", err, apart)
	}
	if err := r.Replace(map[Key]Spec{"a": {Limit: 20, Group: "db"}, "b": {Limit: 20, Group: "db"}, "c": {Limit: 20, Group: "db"}}); err != nil {
		t.Errorf("all members at once: %v", err)
	}
	// The last one that stays behind may also leave the group in the same step.
	if err := r.Replace(map[Key]Spec{"a": {Limit: 40, Group: "db"}, "b": {Limit: 40, Group: "db"}, "c": {Limit: 1}}); err != nil {
		t.Errorf("a member leaves while the others change: %v", err)
	}
}

func TestGroupIsForgottenWithItsLastMember(t *testing.T) {
	r := New()
	mustDeclare(t, r, "a", Spec{Limit: 10, Group: "db"})
	mustDeclare(t, r, "b", Spec{Limit: 10, Group: "db"})
	r.Remove("a")
	if err := r.Declare("c", Spec{Limit: 20, Group: "db"}); err == nil {
		t.Error("a group with a member left takes another bound")
	}
	if err := r.Replace(map[Key]Spec{"b": {Limit: 10}}); err != nil {
		t.Fatal(err)
	}
	mustDeclare(t, r, "c", Spec{Limit: 20, Group: "db"})
	r.Remove("b", "c")
	if len(r.groups) != 0 {
		t.Errorf("groups without members are kept: %v", r.groups)
	}
}
