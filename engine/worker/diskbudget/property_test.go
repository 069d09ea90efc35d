package diskbudget

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// disk follows a budget from outside, and checks what it asks for. It counts by itself.
type disk struct {
	fatal  func(string, ...any)
	b      *Budget
	now    time.Time
	bytes  map[string]int64
	kinds  map[string]Kind
	runs   map[string]string
	steps  map[string]state
	since  map[string]time.Time
	going  []string
	asked  map[string]int // Grows without an answer, by key
	marked map[string]bool
	most   int64
	redone int
}

func newDisk(p Policy, fatal func(string, ...any)) *disk {
	return &disk{fatal: fatal, b: New(p), now: start, bytes: map[string]int64{}, kinds: map[string]Kind{},
		runs: map[string]string{}, steps: map[string]state{}, since: map[string]time.Time{}, asked: map[string]int{},
		marked: map[string]bool{}}
}

func (d *disk) sum(cache bool) (n int64) {
	for key, bytes := range d.bytes {
		if !cache || d.kinds[key] == Cache {
			n += bytes
		}
	}
	return n
}

func (d *disk) apply(h Event) {
	if g, ok := h.(Grow); ok {
		d.asked[g.Key]++
		d.kinds[g.Key], d.runs[g.Key] = g.Kind, g.Run
	}
	before := map[string]state{}
	for key := range d.bytes {
		if !slices.Contains(d.going, key) {
			before[key] = d.steps[key]
		}
	}
	_, tick := h.(Tick)
	redo := ""
	for _, a := range d.b.Apply(d.now, h) {
		switch a := a.(type) {
		case Granted:
			d.asked[a.Key]--
			d.bytes[a.Key] += a.Bytes
			if d.sum(false) > d.b.policy.Budget {
				d.fatal("%v is beyond the budget", a)
			}
		case Refused:
			d.asked[a.Key]--
			if a.Kind == Record && !d.marked[a.Run] {
				d.fatal("%v is refused, and its run was not marked", a)
			}
		case Degrade:
			if d.marked[a.Run] {
				d.fatal("%v for a second time", a)
			}
			d.marked[a.Run] = true
		case Announce:
			if d.kinds[a.Key] != Record || d.steps[a.Key] != finished {
				d.fatal("%v of a %s in state %d", a, d.kinds[a.Key], d.steps[a.Key])
			}
		case Redo:
			redo = a.Key
			d.redone++
		case Delete:
			d.deleted(a, redo, before, tick)
			redo = ""
		}
	}
	if redo != "" {
		d.fatal("%s is to be redone, and does not go", redo)
	}
	d.holds(h)
}

// deleted checks one file that goes: that it may, and that nothing should have gone before it.
func (d *disk) deleted(a Delete, redo string, before map[string]state, tick bool) {
	if slices.Contains(d.going, a.Key) {
		d.fatal("%v for a second time", a)
	}
	if _, there := d.bytes[a.Key]; !there {
		d.fatal("%v is not there", a)
	}
	s, kind := d.steps[a.Key], d.kinds[a.Key]
	if s == writing || kind == Record && s != acknowledged {
		d.fatal("%v: it is a %s in state %d", a, kind, s)
	}
	if unfetched := kind == Work && s < acknowledged; unfetched != (redo == a.Key) {
		d.fatal("%v: redone %q", a, redo)
	}
	d.going = append(d.going, a.Key)
	delete(before, a.Key)
	if tick {
		return // it has been kept for long enough
	}
	for key, step := range before {
		if d.kinds[key] == Record && step != acknowledged || step == writing {
			continue
		}
		other := d.class(key)
		if other < d.class(a.Key) || other == d.class(a.Key) && d.since[key].Before(d.since[a.Key]) {
			d.fatal("%v goes, and %s, of class %d since %v, stays; it is of class %d since %v", a, key, other, d.since[key],
				d.class(a.Key), d.since[a.Key])
		}
	}
}

// class is the place of a file in the order of eviction, by what the test knows itself.
func (d *disk) class(key string) int {
	switch {
	case d.kinds[key] == Cache:
		return 0
	case d.steps[key] == acknowledged:
		return 1
	case d.steps[key] == announced && d.now.Sub(d.since[key]) >= d.b.policy.Announced:
		return 2
	}
	return 3
}

func (d *disk) holds(after any) {
	used, cache := d.sum(false), d.sum(true)
	d.most = max(d.most, used)
	p := d.b.policy
	if used > p.Budget || used != d.b.Used() || cache > p.Budget-p.Floor || used-cache != d.b.Spool() {
		d.fatal("after %T%+v: %d are used (it says %d), %d of them by the cache", after, after, used, d.b.Used(), cache)
	}
}

func (d *disk) step(key string, s state) {
	if d.steps[key] < s {
		d.steps[key], d.since[key] = s, d.now
	}
}

// gone deletes the file that was ordered off first.
func (d *disk) gone(key string) {
	d.going = slices.DeleteFunc(d.going, func(k string) bool { return k == key })
	delete(d.bytes, key)
	d.apply(Gone{key})
	delete(d.steps, key)
	delete(d.since, key)
}

// TestTheBudgetHolds: whatever happens, in whatever order, and however late deletions are.
func TestTheBudgetHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{Budget: 1000, Acknowledged: AcknowledgedFor, Announced: AnnouncedFor}
		p.Floor = rapid.Int64Range(0, 1000).Draw(t, "floor")
		p.High = rapid.Int64Range(100, 1000).Draw(t, "high")
		p.Low = rapid.Int64Range(0, p.High).Draw(t, "low")
		d := newDisk(p, t.Fatalf)
		made := 0
		some := func(fit func(key string) bool) string {
			var keys []string
			for key := range d.bytes {
				if fit(key) {
					keys = append(keys, key)
				}
			}
			slices.Sort(keys)
			if len(keys) == 0 {
				return ""
			}
			return rapid.SampledFrom(keys).Draw(t, "key")
		}
		staying := func(key string) bool { return !slices.Contains(d.going, key) }
		enter := func(s state, from func(key string) bool, h func(key string) Event) func(*rapid.T) {
			return func(*rapid.T) {
				if key := some(func(k string) bool { return staying(k) && d.steps[k] < s && from(k) }); key != "" {
					d.step(key, s)
					d.apply(h(key))
				}
			}
		}
		inSpool := func(key string) bool { return d.kinds[key] != Cache && d.steps[key] >= finished }
		t.Repeat(map[string]func(*rapid.T){
			"a new file": func(t *rapid.T) {
				made++
				g := Grow{Key: fmt.Sprint("file", made), Kind: rapid.SampledFrom([]Kind{Cache, Work, Record}).Draw(t, "kind"),
					Bytes: rapid.Int64Range(1, 400).Draw(t, "bytes")}
				if g.Kind == Record {
					g.Run = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "run")
				}
				d.since[g.Key] = d.now
				d.apply(g)
			},
			"growth": func(t *rapid.T) {
				key := some(func(k string) bool { return staying(k) && d.steps[k] == writing && d.asked[k] == 0 })
				if key != "" {
					d.apply(Grow{Key: key, Kind: d.kinds[key], Run: d.runs[key], Bytes: rapid.Int64Range(1, 100).Draw(t, "more")})
				}
			},
			"the end of writing": enter(finished, func(k string) bool { return d.asked[k] == 0 },
				func(k string) Event {
					d.bytes[k] = rapid.Int64Range(1, d.bytes[k]).Draw(t, "size")
					return Finished{k, d.bytes[k]}
				}),
			"an announcement":    enter(announced, inSpool, func(k string) Event { return Announced{k} }),
			"an acknowledgement": enter(acknowledged, inSpool, func(k string) Event { return Acknowledged{k} }),
			"a read": func(*rapid.T) {
				if key := some(func(k string) bool { return d.kinds[k] == Cache && staying(k) }); key != "" {
					d.since[key] = d.now
					d.apply(Used{key})
				}
			},
			"a deletion": func(t *rapid.T) {
				if len(d.going) > 0 {
					d.gone(rapid.SampledFrom(d.going).Draw(t, "gone"))
				}
			},
			"time": func(t *rapid.T) {
				d.now = d.now.Add(time.Duration(rapid.Int64Range(1, int64(6*time.Minute)).Draw(t, "later")))
				if rapid.Bool().Draw(t, "a tick") {
					d.apply(Tick{})
				}
			},
			"": func(*rapid.T) {},
		})
		// Everybody is answered once what was ordered off the disk has gone.
		for len(d.going) > 0 {
			d.gone(d.going[0])
		}
		for key, n := range d.asked {
			if n != 0 {
				t.Fatalf("%d questions about %s have no answer", n, key)
			}
		}
	})
}

// TestTenGigabytesUnderTwo: a run and queries write 10 GB in parts of some MB, while a server
// fetches them at its pace; the disk never holds more than 2 GB, and nothing of the run is lost.
func TestTenGigabytesUnderTwo(t *testing.T) {
	const gigabyte, megabyte = 1 << 30, 1 << 20
	d := newDisk(PolicyFor(2*gigabyte), t.Fatalf)
	written, fetched := int64(0), int64(0)
	var queue []string // announced, for the server
	lost := 0
	for part := 0; written < 10*gigabyte; part++ {
		g := Grow{Key: fmt.Sprintf("part-%05d", part), Kind: Record, Run: "run"}
		if part%4 == 3 {
			g.Kind, g.Run = Work, ""
		}
		size := int64(7+part%31) * megabyte
		for at := int64(0); at < size; at += g.Bytes {
			g.Bytes = min(8*megabyte, size-at)
			d.now = d.now.Add(2 * time.Millisecond)
			d.apply(g)
			for len(d.going) > 0 {
				d.gone(d.going[0])
			}
			if d.bytes[g.Key] != at+g.Bytes {
				t.Fatalf("%s was refused at %d MB", g.Key, at/megabyte)
			}
		}
		written += size
		d.step(g.Key, finished)
		d.apply(Finished{Key: g.Key})
		d.step(g.Key, announced)
		d.apply(Announced{g.Key})
		queue = append(queue, g.Key)
		// The server falls behind for a while, and catches up.
		for n := 0; n < 3 && len(queue) > 0 && part%160 > 95; n++ {
			key := queue[0]
			queue = queue[1:]
			if _, there := d.bytes[key]; !there {
				lost++
				continue
			}
			fetched += d.bytes[key]
			d.step(key, acknowledged)
			d.apply(Acknowledged{key})
			for len(d.going) > 0 {
				d.gone(d.going[0])
			}
		}
		d.apply(Tick{})
	}
	if d.most > 2*gigabyte || d.most < gigabyte {
		t.Errorf("at most %d MB were on the disk", d.most/megabyte)
	}
	t.Logf("%d MB written, %d MB fetched, at most %d MB on the disk, %d works redone, run marked: %v", written/megabyte,
		fetched/megabyte, d.most/megabyte, d.redone, d.marked)
	if lost != d.redone {
		t.Errorf("%d works are missing, and %d were said to be redone", lost, d.redone)
	}
}
