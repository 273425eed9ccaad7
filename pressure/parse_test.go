package pressure

import (
	"bytes"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseUint(t *testing.T) {
	for in, want := range map[string]uint64{"0": 0, "7": 7, "007": 7, "18446744073709551615": math.MaxUint64} {
		if v, ok := parseUint([]byte(in)); !ok || v != want {
			t.Errorf("%q is %v, %v", in, v, ok)
		}
	}
	for _, in := range []string{"", " ", "-1", "+1", "1.0", "1e3", "0x1", "18446744073709551616", "99999999999999999999", "000000000000000000001", "1 2", "١"} {
		if v, ok := parseUint([]byte(in)); ok {
			t.Errorf("%q is %v", in, v)
		}
	}
}

func TestParseCPUMax(t *testing.T) {
	for _, c := range []struct {
		in            string
		quota, period uint64
		limited, ok   bool
	}{
		{"max 100000\n", 0, 100000, false, true},
		{"max 0\n", 0, 0, false, true}, // no quota is divided by it
		{"50000 100000\n", 50000, 100000, true, true},
		{"50000 100000", 50000, 100000, true, true},
		{"50000 0\n", 50000, 0, true, false},
		{"0 100000\n", 0, 100000, true, false},
		{"100000\n", 0, 0, false, false},
		{"max\n", 0, 0, false, false},
		{"maximum 100000\n", 0, 100000, true, false},
	} {
		quota, period, limited, ok := parseCPUMax([]byte(c.in))
		if ok != c.ok || ok && (quota != c.quota || period != c.period || limited != c.limited) {
			t.Errorf("%q: %v %v %v %v", c.in, quota, period, limited, ok)
		}
	}
}

func TestParseField(t *testing.T) {
	const stat = "usage_usec 10\nuser_usec 7\nnr_throttled 3\nbad\nword x\nlast 9"
	for name, want := range map[string]uint64{"usage_usec": 10, "user_usec": 7, "nr_throttled": 3, "last": 9} {
		if v, ok := parseField([]byte(stat), name); !ok || v != want {
			t.Errorf("%s is %v, %v", name, v, ok)
		}
	}
	for _, name := range []string{"usec", "usage", "usage_usec_", "bad", "word", ""} {
		if v, ok := parseField([]byte(stat), name); ok {
			t.Errorf("%q is %v", name, v)
		}
	}
}

func TestParseStall(t *testing.T) {
	if v, ok := parseStall([]byte("some avg10=1.00 avg60=0.00 avg300=0.00 total=467062300\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n")); !ok || v != 467062300 {
		t.Errorf("%v, %v", v, ok)
	}
	for _, in := range []string{"", "some", "some ", "full avg10=0 total=3\n", "some avg10=0\nfull total=3\n", "some total=-1\n"} {
		if v, ok := parseStall([]byte(in)); ok {
			t.Errorf("%q is %v", in, v)
		}
	}
}

func TestParseMounts(t *testing.T) {
	list := parseMounts([]byte(`22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
broken line
23 22 0:5 / /sys/fs/cgroup rw - cgroup2
24 22 0:26 / /sys/fs/cgroup/unified rw,relatime shared:4 master:3 - cgroup2 none rw,nsdelegate
25 22 0:27 /docker/3f /sys/fs/a\040b\134c rw,relatime - cgroup none rw,cpu,cpuacct
`))
	if len(list) != 2 || !list[0].v2 || list[0].point != "/sys/fs/cgroup/unified" || list[1].v2 ||
		list[1].root != "/docker/3f" || list[1].point != `/sys/fs/a b\c` || !slices.Contains(list[1].options, "cpuacct") {
		t.Errorf("%+v", list)
	}
}

// unescape undoes what the kernel does to a path.
func TestUnescape(t *testing.T) {
	escape := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`)
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.StringOf(rapid.SampledFrom([]rune{'/', 'a', ' ', '\t', '\n', '\\', '0', '4', 'é'})).Draw(t, "path")
		if got := unescape(escape.Replace(path)); got != path {
			t.Fatalf("%q came back as %q", path, got)
		}
	})
}

func FuzzParseUint(f *testing.F) {
	f.Add([]byte("18446744073709551616"))
	f.Add([]byte("42"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, ok := parseUint(b)
		want, isNumber := new(big.Int).SetString(string(b), 10)
		isNumber = isNumber && len(b) <= 20 && want.IsUint64() && !bytes.ContainsAny(b, "+-_")
		if ok != isNumber || ok && want.Uint64() != v {
			t.Fatalf("%q is %v, %v", b, v, ok)
		}
	})
}

func FuzzParseCPUMax(f *testing.F) {
	f.Add([]byte("max 100000\n"))
	f.Add([]byte("50000 0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		quota, period, limited, ok := parseCPUMax(b)
		if ok && limited && (quota == 0 || period == 0) {
			t.Fatalf("%q is a quota of %d in %d", b, quota, period)
		}
	})
}

func FuzzParseField(f *testing.F) {
	f.Add([]byte("usage_usec 10\nnr_throttled 3\n"), "nr_throttled")
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		if v, ok := parseField(b, name); ok && !strings.Contains(string(b), name) {
			t.Fatalf("%q has no %q of %d", b, name, v)
		}
	})
}

func FuzzParseStall(f *testing.F) {
	f.Add([]byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=467062300\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, ok := parseStall(b); ok && !strings.HasPrefix(string(b), "some ") {
			t.Fatalf("%q has no total", b)
		}
	})
}

func FuzzParseMemberships(f *testing.F) {
	f.Add([]byte("4:cpu,cpuacct:/a\n1:name=systemd:/\n0::/b:c\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parseMemberships(b)
		if (err == nil) == (len(list) == 0) && err == nil {
			t.Fatalf("%q has no group and no error", b)
		}
		for _, m := range list {
			if !strings.HasPrefix(m.path, "/") {
				t.Fatalf("%q: %+v", b, m)
			}
		}
	})
}

// Wherever the files say that the process is, looking for its groups ends, and stays below the mount point.
func FuzzFindGroups(f *testing.F) {
	f.Add([]byte("3:cpu:/a/b\n0::/a/b\n"), []byte("25 22 0:27 /a /sys/fs/cgroup rw - cgroup none rw,cpu\n26 22 0:28 / /sys rw - cgroup2 none rw\n"))
	f.Add([]byte("3:cpu:/../b\n"), []byte("25 22 0:27 /.. /sys/fs/cgroup rw - cgroup none rw,cpu\n"))
	f.Fuzz(func(t *testing.T, members, mountinfo []byte) {
		list, err := parseMemberships(members)
		if err != nil {
			return
		}
		c := newCgroups("", DefaultPeriod)
		for _, controller := range []string{"cpu", "cpuacct", "memory", ""} {
			h := c.find(controller, list, parseMounts(mountinfo))
			for _, g := range h.groups() {
				if !strings.HasPrefix(g.dir, h.point) && h.point != "/" {
					t.Fatalf("%q is not below %q", g.dir, h.point)
				}
			}
			h.dirOf("/")
		}
	})
}
