package main

import (
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
)

// combinations are rows of one or two other tables that go together to rows which the table does not have. Each is
// given once in a run: the slots share them out.
type combinations struct {
	from        *sdk.FreePool
	left, right pool
	// rights is how many rows each row of left may go with, all how many combinations there are with those that are taken.
	rights, all int64
	scramble    gen.Scramble
	shares      shares
	// next is the number of the next one of this slot.
	next int64
	// l and r are the rows of the present one.
	l, r int64
}

// freeColumn is a column of one side.
type freeColumn struct {
	*poolColumn
	right bool
}

func newCombinations(req *sdk.OpenRequest, pl *plan) (*combinations, error) {
	for i := range req.Free {
		f := &req.Free[i]
		if f.Table != pl.table.Name || strings.Join(f.Constraint, "\x00") != strings.Join(pl.free.Columns, "\x00") {
			continue
		}
		c := &combinations{from: f, rights: 1, shares: newShares(req.KeySlot, req.KeySlots)}
		var err error
		if c.left, err = readPool(f.Left, pl.table); err != nil {
			return nil, err
		}
		if c.right, err = readPool(f.Right, pl.table); err != nil {
			return nil, err
		}
		if len(f.Right.Columns) > 0 {
			c.rights = int64(c.right.rows)
		}
		c.all = int64(c.left.rows) * c.rights
		c.scramble = gen.NewScramble(c.all)
		return c, nil
	}
	return nil, pl.planError(insert, "the combinations of ("+strings.Join(pl.free.Columns, ", ")+
		") that it does not have are not known")
}

// column finds a column of either side, nil where none has it.
func (c *combinations) column(name string) *freeColumn {
	if p := c.left.find(name); p != nil {
		return &freeColumn{poolColumn: p}
	}
	if p := c.right.find(name); p != nil {
		return &freeColumn{poolColumn: p, right: true}
	}
	return nil
}

// advance goes on to the next combination; false means that there is none.
func (c *combinations) advance() bool {
	for {
		place := c.shares.place(c.next)
		if place >= c.all {
			return false
		}
		c.next++
		at := c.scramble.At(place)
		if c.l, c.r = at/c.rights, at%c.rights; !c.from.IsTaken(c.l, c.r) {
			return true
		}
	}
}

// ofEach is how many combinations stand together of which one is kept for run workers that replace others.
const ofEach = 8

// shares deal numbers to the slots, each to one of them: seven of eight to the workers of a run, the eighth to those
// that replace one, most of which never come.
type shares struct {
	slot, slots int64
	replaces    bool
}

func newShares(slot, slots int) shares {
	workers := max(1, slots/slotsPerWorker)
	if slot < workers {
		return shares{slot: int64(slot), slots: int64(workers)}
	}
	return shares{slot: int64(slot - workers), slots: int64(slots - workers), replaces: true}
}

// place is the n-th number of the slot. It rises with n.
func (s shares) place(n int64) int64 {
	i := s.slot + n*s.slots
	if s.replaces {
		return i*ofEach + ofEach - 1
	}
	return i/(ofEach-1)*ofEach + i%(ofEach-1)
}

// put writes the column's value of the present combination.
func (c *combinations) put(b *sdk.Batch, column *freeColumn) {
	row := c.l
	if column.right {
		row = c.r
	}
	column.put(b, row)
}

// usedUp says that there are no more combinations for this run worker.
func (pl *plan) usedUp() string {
	return "this run worker has inserted its share of the combinations of (" + strings.Join(pl.free.Columns, ", ") +
		") that were left when the run began"
}
