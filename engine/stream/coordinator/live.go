package coordinator

import (
	"maps"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Live is what is known of a query that runs here.
type Live struct {
	// Counts are of all fragments; Out are rows that went to the sink.
	exec.Counts
	// InPerSecond and OutPerSecond are the rates of rows of the last second.
	InPerSecond, OutPerSecond float64
	// LatestRow is the latest time that a row had, LastOut when rows last went to the sink, within a second; zero where
	// there is none.
	LatestRow, LastOut time.Time
	Since              time.Time
	// Fragments are those of the query, by host.
	Fragments map[string]LiveFragment
}

// LiveFragment is what is known of a fragment that runs. In are rows that it read or was sent, Out those that it sent
// or wrote; groups of partial aggregates count as rows.
type LiveFragment struct {
	In, Out                   int64
	InPerSecond, OutPerSecond float64
}

// live adds up what fragments have reported.
func (d *deployment) live() Live {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := Live{Since: d.began, Fragments: map[string]LiveFragment{}}
	for _, host := range slices.Sorted(maps.Keys(d.parts)) {
		p := d.parts[host]
		c, r := p.counts, p.rates
		if l.Waiting == "" && c.Waiting != "" {
			l.Waiting = "on " + host + ": " + c.Waiting
		}
		l.Fragments[host] = LiveFragment{
			In:           c.In + c.Received,
			Out:          c.Out,
			InPerSecond:  r.in + r.received,
			OutPerSecond: r.out,
		}
		l.In, l.Received, l.Malformed, l.Dropped = l.In+c.In, l.Received+c.Received, l.Malformed+c.Malformed,
			l.Dropped+c.Dropped
		l.Late, l.Ahead, l.Timeless = l.Late+c.Late, l.Ahead+c.Ahead, l.Timeless+c.Timeless
		l.DivisionByZero, l.Overflow, l.Cast = l.DivisionByZero+c.DivisionByZero, l.Overflow+c.Overflow, l.Cast+c.Cast
		l.State, l.Latest = l.State+c.State, max(l.Latest, c.Latest)
		l.InPerSecond += r.in
		if sql.SameName(host, d.tail) {
			l.Out, l.OutPerSecond, l.LastOut = c.Out, r.out, r.lastOut
		}
	}
	if l.Latest > 0 {
		l.LatestRow = time.UnixMicro(l.Latest).UTC()
	}
	return l
}

// rates are what a fragment did between its last two reports.
type rates struct {
	at                time.Time
	read              exec.Counts
	in, received, out float64 // rows a second
	// lastOut is when rows were last seen to have gone on.
	lastOut time.Time
}

func (r rates) next(c exec.Counts, now time.Time) rates {
	n := rates{at: now, read: c, lastOut: r.lastOut}
	seconds := 1.0 // the first report comes a second after the start
	if !r.at.IsZero() {
		seconds = max(now.Sub(r.at).Seconds(), 0.1)
	}
	n.in, n.out = float64(c.In-r.read.In)/seconds, float64(c.Out-r.read.Out)/seconds
	n.received = float64(c.Received-r.read.Received) / seconds
	if c.Out > r.read.Out {
		n.lastOut = now
	}
	return n
}

// keepCounts keeps what became of the rows of a query that ends here: what was late, malformed or left out is of no
// less interest then. An attempt that ran counts alone, also where it read nothing: it began from the sources. c is
// locked.
func (c *Coordinator) keepCounts(id int64) {
	d := c.running[id]
	if d == nil {
		return
	}
	d.mu.Lock()
	went := d.started
	d.mu.Unlock()
	l := d.live()
	l.State, l.LatestRow, l.InPerSecond, l.OutPerSecond, l.Waiting = 0, time.Time{}, 0, 0, ""
	for host, p := range l.Fragments {
		l.Fragments[host] = LiveFragment{In: p.In, Out: p.Out}
	}
	if _, known := c.ended[id]; !known || went {
		c.ended[id] = l
	}
}

// Live returns what is known of queries that run here, or have ended here and were not dropped, by id.
func (c *Coordinator) Live() map[int64]Live {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[int64]Live{}
	maps.Copy(all, c.ended)
	for id, d := range c.running {
		all[id] = d.live()
	}
	return all
}
