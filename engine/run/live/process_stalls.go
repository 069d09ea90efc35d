package live

import (
	"maps"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// processStalls is when the processes that carry the load did not run, by what each says of itself. A process that is
// not heard of may have run all the while: it was cut off, or who listened stood still or was another.
type processStalls struct {
	nodes map[string]bool // the nodes that have told of themselves in the measurement
	spans []span
	// short are the latest times in which a node stood still for less than what is a cause by itself.
	short map[string][]shortStall
}

type shortStall struct {
	at     time.Time
	length time.Duration
}

type span struct {
	node     string
	from, to time.Time
}

func (s *processStalls) clone() processStalls {
	same := processStalls{nodes: maps.Clone(s.nodes), spans: slices.Clone(s.spans), short: map[string][]shortStall{}}
	for node, list := range s.short {
		same.short[node] = slices.Clone(list)
	}
	return same
}

// addShort takes a short time in which a node stood still, and tells since when and for how long it has in all, of
// late.
func (s *processStalls) addShort(node string, at time.Time, still time.Duration) (since time.Time, sum time.Duration) {
	list := slices.DeleteFunc(s.short[node], func(p shortStall) bool { return at.Sub(p.at) >= shortStallWindow })
	// Each is told twice, with this second and with the next.
	if n := len(list); n == 0 || list[n-1].length != still {
		list = append(list, shortStall{at, still})
	}
	s.short[node] = list
	for _, p := range list {
		sum += p.length
	}
	return list[0].at.Add(-time.Second - list[0].length), sum
}

// maxSpans bounds the times in which nodes stood still: of a node that stops every few seconds, an hour and more. Such
// a run says nothing of its table by far sooner.
const maxSpans = 2000

// addSpan notes when a node stood still; times that nearly adjoin are one, and so are the last ones where there is no
// room for more.
func (s *processStalls) addSpan(node string, from, to time.Time) {
	s.nodes[node] = true
	for i := len(s.spans) - 1; i >= 0; i-- {
		if last := &s.spans[i]; last.node == node {
			if from.Sub(last.to) < joinGap || len(s.spans) >= maxSpans {
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
	if len(s.spans) < maxSpans {
		s.spans = append(s.spans, span{node, from, to})
	}
}

// AllStalled reports whether every process that carries the load stood still in a part of that time: nothing was asked
// of the target there.
func (v *Validity) AllStalled(from, to time.Time) bool {
	stood := map[string]bool{}
	for _, s := range v.processStalls.spans {
		if s.from.Before(to) && s.to.After(from) {
			stood[s.node] = true
		}
	}
	return len(stood) > 0 && len(stood) == len(v.processStalls.nodes)
}

// AnySilent reports whether a process, or a run worker, was not heard of in a part of that time. It need not have stood
// still: see StoodStill.
func (v *Validity) AnySilent(from, to time.Time) bool {
	return slices.ContainsFunc(v.causes, func(i *interval) bool {
		return i.cause == engine.CauseSnapshotGap && i.from.Before(to) && i.to.After(from)
	})
}

// observeGap judges a snapshot that covers more than a second should: its run worker
// did nothing meanwhile. It is told by the worker's own clock, so that it does not matter
// which phase the run was in when the snapshot came.
func (v *Validity) observeGap(s *engine.WorkerSnapshot) {
	still := time.Duration(min(s.TickSeconds, s.PhaseSeconds) * float64(time.Second))
	if s.Phase != engine.PhaseMeasurement || still <= snapshotGap {
		return
	}
	from, to := s.Timestamp.Add(-still), s.Timestamp.Time
	v.processStalls.addSpan(s.NodeID, from, to)
	v.mark(engine.CauseSnapshotGap, s.WorkerID, from, to, 0,
		engine.Note{Code: engine.AboutWorkerStalled, Worker: s.WorkerID})
}

// observeStall judges what a node says of its own stillness.
func (v *Validity) observeStall(at time.Time, n NodeSample) {
	v.processStalls.nodes[n.NodeID] = true
	still := time.Duration(n.Resources.MaxStallMs * float64(time.Millisecond))
	if still <= processStallLimit {
		v.observeShortStall(at, n.NodeID, still)
		return
	}
	from := at.Add(-time.Second - still)
	v.processStalls.addSpan(n.NodeID, from, at)
	v.mark(engine.CauseSnapshotGap, n.NodeID, from, at, n.Resources.MaxStallMs,
		engine.Note{Code: engine.AboutNodeStalled, Node: n.NodeID})
}

// observeShortStall judges a stillness that is too short to be a cause by itself. Many of them take from a closed loop
// what it says of the table, and nothing else tells of them.
func (v *Validity) observeShortStall(at time.Time, node string, still time.Duration) {
	if still < minShortStall {
		return
	}
	from, sum := v.processStalls.addShort(node, at, still)
	if sum <= shortStallLimit {
		return
	}
	v.mark(engine.CauseSnapshotGap, node+" often", from, at, sum.Seconds(),
		engine.Note{Code: engine.AboutNodeStalledOften, Node: node, Planned: shortStallWindow.Seconds()})
}
