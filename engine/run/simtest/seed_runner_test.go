package simtest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// story is what seeds live: how a life goes, and the test that lives as many of them as there is time for.
type story struct {
	test string
	// live lives one seed, without a rule if one is named, and returns what was broken, with the trace.
	live func(t *testing.T, seed uint64, without string) (wrong []string, trace []byte)
	// usual is how many seeds make test lives.
	usual uint64
}

// tail is how many lines of the trace of a seed that failed are printed.
const tail = 60

// lived lives one seed and fails with what was broken, how to repeat it, and the end of its trace.
func (s story) lived(t *testing.T, seed uint64) {
	t.Helper()
	wrong, trace := s.live(t, seed, "")
	if len(wrong) == 0 {
		return
	}
	lines := strings.Split(strings.TrimSpace(string(trace)), "\n")
	t.Errorf("seed %d:\n%s\nrepeat it: LOADSTONE_SEED=%d go test ./engine/run/simtest -run '^%s$' -v\n"+
		"the end of its trace of %d lines:\n%s", seed, strings.Join(wrong, "\n"), seed, s.test, len(lines),
		strings.Join(lines[max(0, len(lines)-tail):], "\n"))
}

// seeds lives as many as make test has time for, or LOADSTONE_SEEDS of them from LOADSTONE_FIRST_SEED on, or the one
// that LOADSTONE_SEED names, whose trace is printed whole.
func (s story) seeds(t *testing.T) {
	t.Helper()
	t.Parallel()
	if seed, err := strconv.ParseUint(os.Getenv("LOADSTONE_SEED"), 10, 64); err == nil {
		wrong, trace := s.live(t, seed, os.Getenv("LOADSTONE_WITHOUT"))
		t.Logf("%s", trace)
		for _, text := range wrong {
			t.Error(text)
		}
		return
	}
	n, first := s.usual, uint64(1)
	if raced {
		n = 4
	}
	if soak, err := strconv.ParseUint(os.Getenv("LOADSTONE_SEEDS"), 10, 64); err == nil {
		n = soak
	}
	if from, err := strconv.ParseUint(os.Getenv("LOADSTONE_FIRST_SEED"), 10, 64); err == nil {
		first = from
	}
	const groups = 2
	for g := range uint64(groups) {
		t.Run(fmt.Sprintf("%d of %d", g+1, groups), func(t *testing.T) {
			t.Parallel()
			for seed := first + g; seed < first+n; seed += groups {
				s.lived(t, seed)
			}
		})
	}
}

// twice lives the first so many seeds twice, those whose trace is comparable: whatever crossed a border is the same, to
// the byte.
func (s story) twice(t *testing.T, seeds int, comparable func(trace []byte) bool) {
	t.Helper()
	t.Parallel()
	unraced(t)
	for seed, seen := uint64(1), 0; seen < seeds; seed++ {
		_, one := s.live(t, seed, "")
		if !comparable(one) {
			continue
		}
		seen++
		_, other := s.live(t, seed, "")
		if bytes.Equal(one, other) {
			continue
		}
		a, b := strings.Split(string(one), "\n"), strings.Split(string(other), "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Errorf("seed %d: line %d\n%s\nis in another life\n%s\nafter\n%s", seed, i+1, a[i], b[i],
					strings.Join(a[max(0, i-8):i], "\n"))
				break
			}
		}
	}
}

// failed lives the seeds that have failed once.
func (s story) failed(t *testing.T, seeds map[string]uint64) {
	t.Helper()
	t.Parallel()
	unraced(t)
	for what, seed := range seeds {
		t.Run(what, func(t *testing.T) { s.lived(t, seed) })
	}
}

// seeded is a rule that is taken out, what has to be said about it, and within how many seeds.
type seeded struct {
	without, said string
	within        uint64
}

// misses takes one rule out at a time, and looks for what is said about it.
func (s story) misses(t *testing.T, bugs []seeded) {
	t.Helper()
	if testing.Short() {
		t.Skip("make check-ci: it is a test of the simulation, and lives hundreds of seeds")
	}
	t.Parallel()
	unraced(t)
	for _, bug := range bugs {
		t.Run(bug.without, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= bug.within; seed++ {
				wrong, _ := s.live(t, seed, bug.without)
				for _, text := range wrong {
					if strings.Contains(text, " "+bug.said) {
						t.Logf("seed %d: %s", seed, text)
						return
					}
				}
			}
			t.Errorf("%d seeds do not miss it", bug.within)
		})
	}
}

// unraced leaves a test to the part of make test without the race detector.
func unraced(t *testing.T) {
	t.Helper()
	if raced {
		t.Skip("takes too long with the race detector; make test runs it without")
	}
}
