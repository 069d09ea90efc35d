package live

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// stillness is when the processes that carry the load did not run, by what each says of itself. A process that is not
// heard of may have run all the while: it was cut off, or who listened stood still or was another.
type stillness struct {
	carry map[string]bool // the nodes that have told of themselves in the measurement
	spans []span
	// short are the latest times in which a node stood still for less than what is a cause by itself.
	short map[string][]short
}

type short struct {
	told time.Time
	long time.Duration
}

type span struct {
	node     string
	from, to time.Time
}

func (s *stillness) clone() stillness {
	same := stillness{carry: maps.Clone(s.carry), spans: slices.Clone(s.spans), short: map[string][]short{}}
	for node, list := range s.short {
		same.short[node] = slices.Clone(list)
	}
	return same
}

// often takes a short time in which a node stood still, and tells since when and for how long it has in all, of late.
func (s *stillness) often(node string, at time.Time, still time.Duration) (since time.Time, sum time.Duration) {
	list := slices.DeleteFunc(s.short[node], func(p short) bool { return at.Sub(p.told) >= shortWithin })
	// Each is told twice, with this second and with the next.
	if n := len(list); n == 0 || list[n-1].long != still {
		list = append(list, short{at, still})
	}
	s.short[node] = list
	for _, p := range list {
		sum += p.long
	}
	return list[0].told.Add(-time.Second - list[0].long), sum
}

// mostSpans bounds the times in which nodes stood still: of a node that stops every few seconds, an hour and more. Such
// a run says nothing of its table by far sooner.
const mostSpans = 2000

// stood notes when a node stood still; times that nearly adjoin are one, and so are the last ones where there is no
// room for more.
func (s *stillness) stood(node string, from, to time.Time) {
	s.carry[node] = true
	for i := len(s.spans) - 1; i >= 0; i-- {
		if last := &s.spans[i]; last.node == node {
			if from.Sub(last.to) < joinWithin || len(s.spans) >= mostSpans {
				if from.Before(last.from) {
					last.from = from
				}
				if to.After(last.to) {
					last.to = to
				}
				return
			}
			break
		}
	}
	if len(s.spans) < mostSpans {
		s.spans = append(s.spans, span{node, from, to})
	}
}

// StoodStill reports whether every process that carries the load stood still in a part of that time: nothing was asked
// of the target there.
func (v *Validity) StoodStill(from, to time.Time) bool {
	stood := map[string]bool{}
	for _, s := range v.still.spans {
		if s.from.Before(to) && s.to.After(from) {
			stood[s.node] = true
		}
	}
	return len(stood) > 0 && len(stood) == len(v.still.carry)
}

// Unheard reports whether a process, or a run worker, was not heard of in a part of that time. It need not have stood
// still: see StoodStill.
func (v *Validity) Unheard(from, to time.Time) bool {
	return slices.ContainsFunc(v.causes, func(i *interval) bool {
		return i.cause == engine.CauseSnapshotGap && i.from.Before(to) && i.to.After(from)
	})
}

// stood judges a snapshot that covers more than a second should: its run worker
// did nothing meanwhile. It is told by the worker's own clock, so that it does not matter
// which phase the run was in when the snapshot came.
func (v *Validity) stood(s *engine.WorkerSnapshot) {
	still := time.Duration(min(s.TickSeconds, s.PhaseSeconds) * float64(time.Second))
	if s.Phase != engine.PhaseMeasurement || still <= snapshotGap {
		return
	}
	from, to := s.Timestamp.Add(-still), s.Timestamp.Time
	v.still.stood(s.NodeID, from, to)
	v.mark(engine.CauseSnapshotGap, s.WorkerID, from, to, 0, func(_ float64, length time.Duration) string {
		return fmt.Sprintf("%s: it stood still for %.0f s: its process was stopped, or the machine was", s.WorkerID,
			length.Seconds())
	})
}

// stopped judges what a node says of its own stillness.
func (v *Validity) stopped(at time.Time, n NodeSample) {
	v.still.carry[n.NodeID] = true
	still := time.Duration(n.Resources.StoodStillMs * float64(time.Millisecond))
	if still <= stillLimit {
		v.faltered(at, n.NodeID, still)
		return
	}
	from := at.Add(-time.Second - still)
	v.still.stood(n.NodeID, from, at)
	v.mark(engine.CauseSnapshotGap, n.NodeID, from, at, n.Resources.StoodStillMs, func(worst float64, _ time.Duration) string {
		return fmt.Sprintf("%s: the process stood still for up to %.1f s: it was stopped, or the machine was, or had no "+
			"processor for it", n.NodeID, worst/1e3)
	})
}

// faltered judges a stillness that is too short to be a cause by itself. Many of them take from a closed loop what it
// says of the table, and nothing else tells of them.
func (v *Validity) faltered(at time.Time, node string, still time.Duration) {
	if still < shortLeast {
		return
	}
	from, sum := v.still.often(node, at, still)
	if sum <= shortLimit {
		return
	}
	v.mark(engine.CauseSnapshotGap, node+" often", from, at, sum.Seconds(), func(worst float64, _ time.Duration) string {
		return fmt.Sprintf("%s: the process stood still again and again, up to %.1f s within %.0f s: it was stopped, or the "+
			"machine was, or had no processor for it", node, worst, shortWithin.Seconds())
	})
}
