package host

import (
	"errors"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const mb = 1 << 20

func take(t *testing.T, p *mappingPool) *mapping {
	t.Helper()
	m, err := p.Take()
	if err != nil {
		t.Skipf("this system maps nothing: %v", err)
	}
	return m
}

func grow(t *testing.T, m *mapping, size int) []byte {
	t.Helper()
	b, err := m.Grow(size)
	if err != nil || len(b) != size || cap(b) != size {
		t.Fatalf("%d of %d bytes, %v", len(b), size, err)
	}
	return b
}

// touch writes every page.
func touch(b []byte) {
	for i := 0; i < len(b); i += 4096 {
		b[i] = 0xee
	}
}

// zero reports whether nothing is written in b.
func zero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

func TestAMappingGrowsWhereItIs(t *testing.T) {
	p := newMappingPool(4 * mb)
	defer p.Close()
	m := take(t, p)
	first := grow(t, m, 64<<10)
	touch(first)
	second := grow(t, m, 4*mb)
	if &first[0] != &second[0] {
		t.Error("it moved")
	}
	if !zero(second[64<<10:]) || second[0] != 0xee {
		t.Error("growing changed what is in it")
	}
	if _, err := m.Grow(4*mb + 1); !errors.Is(err, errMemoryRefused) {
		t.Errorf("past its end: %v", err)
	}
	if got := grow(t, m, 4*mb); &got[0] != &first[0] {
		t.Error("growing by nothing moved it")
	}
	m.GiveBack()
	if _, err := m.Grow(64 << 10); !errors.Is(err, errMemoryRefused) {
		t.Errorf("after it was given back: %v", err)
	}
}

// TestAMappingIsCleanForTheNext: the next one gets the same addresses, and nothing of what was in them.
func TestAMappingIsCleanForTheNext(t *testing.T) {
	p := newMappingPool(4 * mb)
	defer p.Close()
	m := take(t, p)
	first := grow(t, m, 3*mb)
	touch(first)
	m.GiveBack()
	m.GiveBack()
	if p.Lent() != 0 {
		t.Errorf("%d are lent", p.Lent())
	}
	if !faults(first) {
		t.Error("what was given back can still be read")
	}
	next := take(t, p)
	defer next.GiveBack()
	second := grow(t, next, 4*mb)
	if &first[0] != &second[0] {
		t.Error("the mapping was not used again")
	}
	if !zero(second) {
		t.Error("the next one reads what the one before wrote")
	}
}

// faults reports whether reading b is an error.
func faults(b []byte) (faulted bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { faulted = recover() != nil }()
	read = b[0]
	return false
}

var read byte

// resident is how much memory of this process is there.
func resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// TestMemoryGoesBackToTheSystem: what a guest used is not resident after it.
func TestMemoryGoesBackToTheSystem(t *testing.T) {
	p := newMappingPool(64 * mb)
	defer p.Close()
	m := take(t, p)
	before := resident(t)
	touch(grow(t, m, 64*mb))
	used := resident(t)
	m.GiveBack()
	after := resident(t)
	t.Logf("%d MB before, %d MB in use, %d MB after", before/mb, used/mb, after/mb)
	if used-before < 56*mb || used-after < 56*mb {
		t.Errorf("%d MB before, %d MB in use, %d MB after", before/mb, used/mb, after/mb)
	}
}

func TestOnlyAFewMappingsWait(t *testing.T) {
	p := newMappingPool(mb)
	var list []*mapping
	for range 3 * mostIdleMappings {
		list = append(list, take(t, p))
	}
	if p.Lent() != len(list) {
		t.Errorf("%d are lent", p.Lent())
	}
	last := list[len(list)-1]
	list = list[:len(list)-1]
	for _, m := range list {
		m.GiveBack()
	}
	if len(p.idle) != mostIdleMappings || p.Lent() != 1 {
		t.Errorf("%d wait, %d are lent", len(p.idle), p.Lent())
	}
	p.Close()
	touch(grow(t, last, mb)) // what is in use stays
	last.GiveBack()
	if len(p.idle) != 0 || p.Lent() != 0 {
		t.Errorf("%d wait and %d are lent after the end", len(p.idle), p.Lent())
	}
}

// TestAMappingThatTheSystemRefuses asks for more addresses than there are.
func TestAMappingThatTheSystemRefuses(t *testing.T) {
	p := newMappingPool(1 << 50)
	defer p.Close()
	if _, err := p.Take(); !errors.Is(err, errMemoryRefused) || p.Lent() != 0 {
		t.Errorf("%v, %d are lent", err, p.Lent())
	}
}

// TestMappingsAreOfOneEach has many take, write and give back at once: each finds zeros, and
// what it wrote itself.
func TestMappingsAreOfOneEach(t *testing.T) {
	p := newMappingPool(mb)
	defer p.Close()
	take(t, p).GiveBack()
	var all sync.WaitGroup
	for id := byte(1); id <= 8; id++ {
		all.Go(func() {
			for range 200 {
				m, err := p.Take()
				if err != nil {
					t.Error(err)
					return
				}
				b, err := m.Grow(64 << 10)
				if err != nil || !zero(b) {
					t.Errorf("it is not clean: %v", err)
					return
				}
				for i := range b {
					b[i] = id
				}
				for _, v := range b {
					if v != id {
						t.Error("somebody else writes in it")
						return
					}
				}
				m.GiveBack()
			}
		})
	}
	all.Wait()
	if p.Lent() != 0 {
		t.Errorf("%d are lent", p.Lent())
	}
}
