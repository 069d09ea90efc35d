package live

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// outageOver is how long a target must be well before an outage counts as another one.
const outageOver = 5 * time.Second

// OutageWatch follows, in the ticks of a run that reconnects, whether its target is away, and says for how long that is
// borne. It knows no clock. The outages themselves are computed from the record.
type OutageWatch struct {
	tolerated time.Duration
	// since is when the latest outage began, and latest its last second that was bad.
	since, latest time.Time
	lost          map[string]int64 // connections lost and refused so far, by run worker
	drops         []Drops
	// partial: not all drops are known. The watch began with a load that another process had watched before, or there
	// were too many.
	partial bool
}

// Drops are operations of an open loop that were dropped in a second.
type Drops struct {
	At    time.Time
	Count int64
}

// maxDrops bounds them: an hour in which each second has some.
const maxDrops = 3600

// NewOutageWatch returns a watch that bears outages for so long; 0 bears none.
func NewOutageWatch(tolerated time.Duration) *OutageWatch {
	return &OutageWatch{tolerated: tolerated, lost: map[string]int64{}}
}

// Observe takes a tick of the run at a time, and reports whether guardrails and the verdict leave the target alone: an
// outage has begun, and may still go on.
func (o *OutageWatch) Observe(at time.Time, s *Second) bool {
	o.countDrops(at, s)
	if o.tolerated <= 0 {
		return false
	}
	if o.isBad(s) {
		if o.since.IsZero() || at.Sub(o.latest) > outageOver {
			o.since = at.Add(-time.Second)
		}
		o.latest = at
	}
	return !o.since.IsZero() && at.Sub(o.since) <= o.tolerated
}

// isBad reports whether over half of what ended failed, or connections were lost and less than half are open.
func (o *OutageWatch) isBad(s *Second) bool {
	var ended, failed int64
	var active, wanted int
	losing := false
	for i := range s.Snapshots {
		snap := &s.Snapshots[i]
		ended, failed = ended+snap.TickStarted, failed+snap.TickErrors
		active, wanted = active+snap.ActiveConnections, wanted+snap.TargetConnections
		n := snap.Connections.Lost + snap.Connections.Refused
		losing = losing || n > o.lost[snap.WorkerID]
		o.lost[snap.WorkerID] = n
	}
	return float64(failed) > errorLimit*float64(ended) || losing && 2*active < wanted
}

// countDrops takes in what was dropped.
func (o *OutageWatch) countDrops(at time.Time, s *Second) {
	var dropped int64
	for i := range s.Snapshots {
		dropped += s.Snapshots[i].TickDropped
	}
	switch {
	case dropped == 0:
	case len(o.drops) == maxDrops:
		o.partial = true
	default:
		o.drops = append(o.drops, Drops{at, dropped})
	}
}

// JoinLate tells that the load went on before the watch began.
func (o *OutageWatch) JoinLate() { o.partial = true }

// Dropped are the seconds in which operations were dropped; known is false where not all of them were seen. The caller
// owns them.
func (o *OutageWatch) Dropped() (drops []Drops, known bool) {
	return append([]Drops(nil), o.drops...), !o.partial
}

// AddDropped adds up what was dropped in each of the outages of a run that was watched from its beginning on.
func AddDropped(outages []engine.Outage, drops []Drops) {
	for i := range outages {
		o := &outages[i]
		if o.Kind != nil {
			continue
		}
		var n int64
		for _, d := range drops {
			// A tick tells of the second before it, and arrives up to a second later.
			if d.At.After(o.LastSuccess.Time) && !d.At.After(o.Until().Add(2*time.Second)) {
				n += d.Count
			}
		}
		o.Dropped = &n
	}
}
