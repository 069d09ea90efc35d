package refresh_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
)

// wide is the table that is refreshed in parts.
const wide = "wide"

// division is a refresh of the table wide in parts, as the results database keeps it: which definition it is of,
// what it read, and for each part that is there of which division it was made.
type division struct {
	id            int64
	version, read int
	parts         map[string]int64
}

var partNames = []string{"1", "2", "3", "4"}

// has reports whether a part is still to be made.
func (d *division) has(part string) bool {
	return d != nil && slices.Contains(partNames, part) && d.parts[part] == 0
}

// missing are the parts that are not there yet.
func (d *division) missing() (names []string) {
	for _, name := range partNames {
		if d.has(name) {
			names = append(names, name)
		}
	}
	return names
}

// divided writes what a claim of the table wide, or of a part of it, has made; under is the division that it
// read when it began. It needs mu, and is behind the fence.
func (w *world) divided(c refresh.Claim, read int, under *division) (r refresh.Result, err error) {
	d := w.division
	switch {
	case c.Subtask != "":
		if d == nil || d.id != under.id && w.broken != "division" {
			w.refused++
			return r, store.ErrClaimLost
		}
		w.writes++
		d.parts[c.Subtask] = under.id
		return refresh.Result{Unchanged: true}, nil
	case d == nil || d.version != w.version:
		w.division = &division{id: c.Epoch, version: w.version, read: read, parts: map[string]int64{}}
		return refresh.Result{Parts: slices.Clone(partNames), ReplaceParts: true}, nil
	}
	if missing := d.missing(); len(missing) > 0 {
		return refresh.Result{Parts: missing}, nil
	}
	for _, name := range partNames {
		if d.parts[name] != d.id {
			w.problem("the part %s of division %d is of %d", name, d.id, d.parts[name])
		}
	}
	w.writes++
	w.gathered++
	w.content[c.Task], w.division = d.read, nil
	return refresh.Result{Rows: int64(d.read)}, nil
}

// midway has a process stand still for 130 s in the middle of a refresh, until that was often enough: one at a time, so
// that another one is there to take the refresh over and the first one comes late.
func (w *world) midway(p *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); w.pauses > 0 && !p.dead && now.After(p.frozen) && now.After(w.still) && w.rand.IntN(2) == 0 {
		w.pauses--
		p.frozen = now.Add(130 * time.Second)
		w.still = p.frozen
	}
}

// asks is a user's "refresh now", which is refused while a table is suspended.
func (w *world) asks(table string) { _ = w.store.RequestRefresh(w.t.Context(), table) }

// changes are what users do meanwhile: a table is suspended for a while, dropped and made anew, its definition
// changed. With -1 everything is there and active.
func (w *world) changes(i int) {
	ctx := w.t.Context()
	must := func(err error) {
		if err != nil {
			w.t.Fatal(err)
		}
	}
	drift := refresh.Table{Name: "drift", Kind: refresh.SQL, Definition: "SELECT", TargetLagSeconds: 30,
		Mode: refresh.Full, Sources: []string{"daily"}}
	if _, err := w.store.DynamicTable(ctx, drift.Name); err != nil {
		_, err = w.store.CreateDynamicTable(ctx, drift)
		must(err)
	}
	for _, name := range []string{"runs", "daily", drift.Name, wide} {
		if table, err := w.store.DynamicTable(ctx, name); err != nil || table.Status == refresh.Suspended && i%4 != 3 &&
			i >= 0 {
			must(err)
			continue
		}
		// Nobody lets a table fail for good here, nor sleep.
		must(w.store.SetDynamicTableStatus(ctx, name, refresh.Active))
	}
	switch {
	case i < 0:
	case w.chance(0.1):
		must(w.store.SetDynamicTableStatus(ctx, []string{"daily", "drift", wide}[i%3], refresh.Suspended))
	case w.chance(0.1):
		w.mu.Lock()
		must(w.store.DropDynamicTable(ctx, drift.Name))
		task := refresh.Task{Table: drift.Name}
		delete(w.fences, task)
		delete(w.content, task)
		kept := w.live[task]
		kept.ExpiresAt = engine.Time{}
		w.live[task] = kept
		w.mu.Unlock()
	case w.chance(0.2), w.broken == "division":
		w.mu.Lock()
		w.version++
		w.mu.Unlock()
		w.asks(wide)
	}
}

// TestAThousandPausesInTheMiddleOfARefresh: processes stand still for 130 s, longer than their claims hold, after
// they have read and before they write, a thousand times and beside all other faults. Nothing stale is written.
func TestAThousandPausesInTheMiddleOfARefresh(t *testing.T) {
	t.Parallel()
	pauses := 1000
	if raceEnabled {
		pauses = 40
	}
	const worlds = 4
	writes, refused := 0, 0
	for seed := range uint64(worlds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := simulate(t, 1000+seed, "", pauses/worlds)
			for _, p := range w.problems {
				t.Error(p)
			}
			if w.pauses > 0 {
				t.Errorf("%d pauses are left", w.pauses)
			}
			writes, refused = writes+w.writes, refused+w.refused
		})
	}
	t.Logf("%d pauses, %d writes, %d stale ones refused", pauses, writes, refused)
	if refused < pauses/10 {
		t.Errorf("only %d stale writes were tried: the pauses show nothing", refused)
	}
}
