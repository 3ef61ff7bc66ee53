package loader_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getorprime/getorprime/loader"
)

// registry registers each prefix with itself as the value.
func registry(tb testing.TB, prefixes ...string) *loader.Registry[string] {
	tb.Helper()
	r := new(loader.Registry[string])
	for _, p := range prefixes {
		if err := r.Add(p, p); err != nil {
			tb.Fatal(err)
		}
	}
	return r
}

func TestRegistryLookup(t *testing.T) {
	tests := []struct {
		name     string
		prefixes []string
		key      string
		want     string
		wantOK   bool
	}{
		{"empty registry", nil, "user:7", "", false},
		{"match", []string{"user:"}, "user:7", "user:", true},
		{"whole key", []string{"user:"}, "user:", "user:", true},
		{"key shorter than the prefix", []string{"user:"}, "user", "", false},
		{"no match", []string{"user:"}, "order:7", "", false},
		{"longest", []string{"user:", "user:vip:", "u"}, "user:vip:7", "user:vip:", true},
		{"longest of another key", []string{"user:", "user:vip:"}, "user:vi", "user:", true},
		{"catch-all", []string{"", "user:"}, "order:7", "", true},
		{"catch-all and the empty key", []string{""}, "", "", true},
		{"bytes, not characters", []string{"\xc3"}, "ä", "\xc3", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prefix, v, ok := registry(t, tt.prefixes...).Lookup(tt.key)
			if prefix != tt.want || v != tt.want || ok != tt.wantOK {
				t.Errorf("Lookup(%q) = %q, %q, %v; want %q, %v", tt.key, prefix, v, ok, tt.want, tt.wantOK)
			}
		})
	}
}

func TestRegistryAddTwice(t *testing.T) {
	r := new(loader.Registry[int])
	for _, prefix := range []string{"user:", ""} {
		if err := r.Add(prefix, 1); err != nil {
			t.Fatal(err)
		}
		err := r.Add(prefix, 2)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", prefix)) {
			t.Errorf("Add of %q again = %v, want an error that names it", prefix, err)
		}
		if _, v, _ := r.Lookup(prefix); v != 1 {
			t.Errorf("Lookup(%q) = %d after a refused Add, want the first", prefix, v)
		}
	}
}

func TestRegistryExtends(t *testing.T) {
	r := registry(t, "user:", "user:vip:", "user:a", "user", "order:", "usf", "")
	tests := []struct {
		prefix string
		want   []string
	}{
		{"user:", []string{"user:a", "user:vip:"}},
		{"user:vip:", nil},
		{"use", []string{"user", "user:", "user:a", "user:vip:"}},
		{"", []string{"order:", "user", "user:", "user:a", "user:vip:", "usf"}},
		{"z", nil},
	}
	for _, tt := range tests {
		if got := r.Extends(tt.prefix); !slices.Equal(got, tt.want) {
			t.Errorf("Extends(%q) = %q, want %q", tt.prefix, got, tt.want)
		}
	}
	r.Extends("user:")[0] = "changed"
	if got := r.Extends("user:")[0]; got != "user:a" {
		t.Errorf("a caller's change shows in the registry: %q", got)
	}
}

func TestRegistryAll(t *testing.T) {
	r := registry(t, "b", "a", "")
	all := r.All()
	if err := r.Add("c", "c"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for p, v := range all {
		got = append(got, p+"="+v)
	}
	if want := []string{"=", "a=a", "b=b"}; !slices.Equal(got, want) {
		t.Errorf("All = %q, want %q in order and without the later one", got, want)
	}
	for p := range r.All() {
		if p != "" {
			t.Errorf("All went on to %q after the loop had ended", p)
		}
		break
	}
}

// naive is the model: all prefixes are tried.
func naive(prefixes []string, key string) (best string, ok bool) {
	for _, p := range prefixes {
		if strings.HasPrefix(key, p) && (!ok || len(p) > len(best)) {
			best, ok = p, true
		}
	}
	return best, ok
}

func FuzzRegistry(f *testing.F) {
	f.Add("user:,user:vip:,order:", "user:vip:7")
	f.Add(",a,aa,aaa,b", "aab")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, list, key string) {
		prefixes := slices.Compact(slices.Sorted(slices.Values(strings.Split(list, ","))))
		shuffled := slices.Clone(prefixes)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		r := registry(t, shuffled...)
		compareWithModel(t, r, prefixes, key)
		if got := slices.Collect(maps.Keys(maps.Collect(r.All()))); len(got) != len(prefixes) {
			t.Errorf("All has %d prefixes, want %d", len(got), len(prefixes))
		}
	})
}

func compareWithModel(t *testing.T, r *loader.Registry[string], prefixes []string, key string) {
	t.Helper()
	want, wantOK := naive(prefixes, key)
	prefix, v, ok := r.Lookup(key)
	if prefix != want || v != want || ok != wantOK {
		t.Errorf("Lookup(%q) in %q = %q, %q, %v; want %q, %v", key, prefixes, prefix, v, ok, want, wantOK)
	}
	longer := slices.DeleteFunc(slices.Clone(prefixes), func(p string) bool {
		return p == key || !strings.HasPrefix(p, key)
	})
	if got := r.Extends(key); !slices.Equal(got, longer) {
		t.Errorf("Extends(%q) in %q = %q, want %q", key, prefixes, got, longer)
	}
}

// TestRegistryConcurrentUse adds while others look up: what was added is found from
// then on.
func TestRegistryConcurrentUse(t *testing.T) {
	r := new(loader.Registry[int])
	var wg sync.WaitGroup
	for writer := range 4 {
		wg.Go(func() {
			for i := range 50 {
				prefix := fmt.Sprintf("%d-%d:", writer, i)
				if err := r.Add(prefix, i); err != nil {
					t.Error(err)
				}
				if _, v, ok := r.Lookup(prefix + "id"); !ok || v != i {
					t.Errorf("Lookup of %q right after Add = %d, %v", prefix, v, ok)
				}
			}
		})
	}
	wg.Wait()
	if got := len(r.Extends("")); got != 200 {
		t.Errorf("%d prefixes registered, want 200", got)
	}
}

func TestRegistryLookupDoesNotAllocate(t *testing.T) {
	r := registry(t, "user:", "user:vip:", "order:")
	for _, key := range []string{"user:vip:7", "nothing"} {
		if n := testing.AllocsPerRun(100, func() { r.Lookup(key) }); n != 0 {
			t.Errorf("Lookup(%q) allocates %v times, want never", key, n)
		}
	}
}

func BenchmarkRegistryLookup(b *testing.B) {
	r := new(loader.Registry[string])
	for i := range 100 {
		if err := r.Add(strings.Repeat("x", i%10)+fmt.Sprintf("space%02d:", i), ""); err != nil {
			b.Fatal(err)
		}
	}
	for name, key := range map[string]string{"hit": "space40:123456", "miss": "nothing:123456"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Lookup(key)
			}
		})
	}
}
