package abi

import (
	"errors"
	"strings"
	"testing"
)

// TestCheckGroups: statement 0 declares two columns, statement 1 none.
func TestCheckGroups(t *testing.T) {
	for _, c := range []struct {
		name string
		fill func(b *Batch)
		says string // "" when it is fine
	}{
		{"alone", func(b *Batch) { b.Op(0) }, ""},
		{"transaction", func(b *Batch) { b.Begin(); b.Op(0); b.Op(1); b.Ref(b.Last()-1, 1); b.Commit() }, ""},
		{"ends past the limit", func(b *Batch) {
			for range 4 {
				b.Op(0)
			}
			b.Begin()
			b.Op(0)
			b.Op(0)
			b.Rollback()
		}, ""},
		{"begins past the limit", func(b *Batch) {
			for range 5 {
				b.Op(0)
			}
			b.Begin()
			b.Op(0)
			b.Rollback()
		}, "asked for 5"},
		{"empty", func(b *Batch) { b.Begin(); b.Commit() }, "no operation"},
		{"nested", func(b *Batch) { b.Begin(); b.Op(0); b.Begin() }, "nest"},
		{"no end", func(b *Batch) { b.Op(0); b.Begin(); b.Op(0) }, "no end"},
		{"no beginning", func(b *Batch) { b.Commit() }, "none has begun"},
		{"too long", func(b *Batch) {
			b.Begin()
			for range MaxGroupOps + 1 {
				b.Op(0)
			}
			b.Commit()
		}, "the limit is 256"},
		{"delay inside", func(b *Batch) { b.Begin(); b.Op(0); b.Delay(1); b.Commit() }, "think time"},
		{"ref outside", func(b *Batch) { b.Op(0); b.Ref(0, 0) }, "in no transaction"},
		{"ref to itself", func(b *Batch) { b.Begin(); b.Op(0); b.Ref(b.Last(), 0); b.Commit() }, "itself"},
		{"ref to no column", func(b *Batch) { b.Begin(); b.Op(0); b.Op(0); b.Ref(0, 2); b.Commit() }, "fewer columns"},
		{"ref to a statement without columns", func(b *Batch) { b.Begin(); b.Op(1); b.Op(0); b.Ref(0, 0); b.Commit() },
			"fewer columns"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Batch
			b.Reset()
			c.fill(&b)
			ops, err := Decode(b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			err = CheckGroups(ops, 5, func(s uint16) int { return 2 - 2*int(s) })
			if (err == nil) != (c.says == "") || err != nil &&
				(!errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, expected %q", err, c.says)
			}
		})
	}
}
