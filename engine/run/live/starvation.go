package live

import (
	"maps"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// The part of a figure that may be the generator's before it is said, and what is too little to be measured.
const (
	starvedShare = 0.05
	minStarvedMs = 0.05
	// wakesMs is what a client that does nothing but wait, send and read finds P50 and P95 above the target's own on an
	// idle machine of two processors that it shares with the target (make check-witnesses): the way there and back, and a
	// thread that wakes up. wakesTailMs is the same of the P99. Up to that it is a note: no client has less there.
	wakesMs, wakesTailMs = 0.25, 0.5
)

// witnesses add up what the processes that carry the load noticed of their own lateness in the measurement, by node.
type witnesses struct {
	latest, measured map[string]engine.Witness
	// moments are the looks with which something was told that can stop all of a node's load.
	moments []moment
	// untold is when there was no more room for one, zero before: of what comes then nothing is known.
	untold time.Time
}

// moment is what one look told, of the time since the look before.
type moment struct {
	node        string
	at          time.Time
	stopped     time.Duration
	retransmits int64
}

// maxMoments bounds them: an hour in which each second has one.
const maxMoments = 3600

func newWitnesses() witnesses {
	return witnesses{latest: map[string]engine.Witness{}, measured: map[string]engine.Witness{}}
}

func (w *witnesses) clone() witnesses {
	return witnesses{maps.Clone(w.latest), maps.Clone(w.measured), slices.Clone(w.moments), w.untold}
}

// observe takes what the nodes have told. The first word of one is what later ones count from.
func (w *witnesses) observe(at time.Time, measuring bool, nodes []NodeSample) {
	for _, n := range nodes {
		told := n.Resources.Witness
		if told == nil {
			continue
		}
		before, known := w.latest[n.NodeID]
		w.latest[n.NodeID] = *told
		if !known || !measuring || told.RunNs < before.RunNs || told.Late.Count() < before.Late.Count() {
			continue // a process that began anew counts from 0
		}
		since := told.Since(before)
		if sum, counted := w.measured[n.NodeID]; counted {
			since = sum.Plus(since)
		}
		w.measured[n.NodeID] = since
		last := told.Since(before)
		switch {
		case last.StoppedNs == 0 && last.Retransmits <= 0:
		case len(w.moments) < maxMoments:
			w.moments = append(w.moments, moment{n.NodeID, at, time.Duration(last.StoppedNs), last.Retransmits})
		case w.untold.IsZero():
			w.untold = at
		}
	}
}

// JudgeWitnesses holds what the generator noticed of itself against the figures of the run, in which its lateness is
// contained. An open loop knows by how much each operation began late; that is in its latency too.
func (v *Validity) JudgeWitnesses(f *engine.Figures) {
	if f.LatencyMs == nil || v.outcome.Search || len(v.witnesses.measured) == 0 {
		return
	}
	decode := 0.0
	if f.SplitMs != nil {
		decode = f.SplitMs.Decode
	}
	var all *engine.Witness
	worst, worstNode := 0.0, ""
	for _, node := range slices.Sorted(maps.Keys(v.witnesses.measured)) {
		w := v.witnesses.measured[node]
		if p := w.Uncertainty(decode).P95; p >= worst {
			worst, worstNode = p, node
		}
		if all != nil {
			w = all.Plus(w)
		}
		all = &w
	}
	u := all.Uncertainty(decode)
	if lag := f.ScheduleLagMs; lag != nil {
		u = engine.Uncertainty{P50: u.P50 + lag.P50, P95: u.P95 + lag.P95, P99: u.P99 + lag.P99}
	}
	// Percentiles are in order without what the generator added, too: none is too high by more than what lies between it
	// and the least that the median can be.
	least := f.LatencyMs.P50 - u.P50
	u.P95, u.P99 = min(u.P95, f.LatencyMs.P95-least), min(u.P99, f.LatencyMs.P99-least)
	var high []engine.HiddenPercentile
	starved := false
	for _, p := range []engine.HiddenPercentile{{Name: "P50", Ms: f.LatencyMs.P50, WouldMs: u.P50},
		{Name: "P95", Ms: f.LatencyMs.P95, WouldMs: u.P95}, {Name: "P99", Ms: f.LatencyMs.P99, WouldMs: u.P99}} {
		if p.WouldMs > minStarvedMs && p.WouldMs > starvedShare*p.Ms {
			starved = starved || p.WouldMs > wakesMs && (p.Name != "P99" || p.WouldMs > wakesTailMs)
			p.WouldMs = max(p.Ms-p.WouldMs, 0)
			high = append(high, p)
		}
	}
	n := engine.Note{Code: engine.AboutGeneratorStarved, Node: worstNode, Hidden: high, Percent: 100 * all.WaitShare()}
	switch {
	case starved:
		v.Add(engine.CauseGeneratorStarved, n, v.outcome.From, v.outcome.To)
	case len(high) > 0:
		n.Code = engine.NoteThreadsWake
		v.AddFigureNote(n)
	}
}

// The part of a measurement that freezes may take before they are a cause, and for how long after one it may be told.
const (
	frozenShare = 0.05
	toldWithin  = 2500 * time.Millisecond
)

// JudgeFreezes says of freezes that the record shows whose they were, by what the generator noticed meanwhile.
func (v *Validity) JudgeFreezes(f *engine.Figures, connections int) {
	frozen := f.Freezes
	if frozen == nil || f.DurationSeconds <= 0 || v.outcome.Search {
		return
	}
	whose := map[string]float64{}
	for _, t := range frozen.Times {
		whose[v.witnesses.whose(t, connections)] += t.Seconds
	}
	most := ""
	for _, cause := range slices.Sorted(maps.Keys(whose)) {
		if whose[cause] > whose[most] {
			most = cause
		}
	}
	n := engine.Note{Code: engine.NoteFreezes, Cause: most, Count: frozen.Count, Seconds: frozen.Seconds,
		Worst: frozen.LongestSeconds, Percent: 100 * frozen.Seconds / f.DurationSeconds}
	if frozen.Seconds < frozenShare*f.DurationSeconds {
		v.AddFigureNote(n)
		return
	}
	n.Code = engine.AboutFreezes
	v.Add(engine.CauseFreezes, n, v.outcome.From, v.outcome.To)
}

// heldShare is the part of the load's time that operations of the warm-up may hold before a run is DEGRADED.
const heldShare = 0.05

// JudgeHeldOver doubts a closed loop in which operations of the warm-up kept connections for a large part of the
// measurement, and for longer than any that was measured: a table that is locked for some, a backend that hangs. Their
// latency is in no figure, and the load was less.
func (v *Validity) JudgeHeldOver(f *engine.Figures, connections int) {
	if f.LatencyMs == nil || f.ServiceMs != nil || f.RecordPartial || v.outcome.Search || connections == 0 {
		return
	}
	share := f.HeldOver.Seconds / (float64(connections) * f.DurationSeconds)
	if share > heldShare && f.HeldOver.LongestSeconds*1e3 > f.LatencyMs.Max {
		v.Add(engine.CauseConnectionsShort, engine.Note{Code: engine.AboutHeldOver, Seconds: f.HeldOver.LongestSeconds,
			Percent: 100 * share}, v.outcome.From, v.outcome.To)
	}
}

// A connection on which the network loses something sends segments again. They are counted of the whole machine: from
// one for each connection, and leastAgain, it was the network, and up to a quarter of that it was something else.
const leastAgain = 4

// whose says whose a freeze was: the generator's where all its processes stood still for most of it, the network's
// where the generator's machine sent segments again as for all connections, and the target's where neither was so.
func (w *witnesses) whose(t engine.Stall, connections int) string {
	from, to := t.From.Time, t.From.Add(time.Duration(t.Seconds*float64(time.Second))+toldWithin)
	if len(w.measured) == 0 || !w.untold.IsZero() && !to.Before(w.untold) {
		return engine.StallUnknown
	}
	stopped, again := map[string]time.Duration{}, int64(0)
	for _, m := range w.moments {
		if m.at.After(from) && !m.at.After(to) {
			stopped[m.node] += m.stopped
			again += max(m.retransmits, 0)
		}
	}
	stood := 0
	for _, d := range stopped {
		if d.Seconds() >= t.Seconds/2 {
			stood++
		}
	}
	all, told := max(leastAgain, int64(connections)), true
	for _, m := range w.measured {
		told = told && m.Retransmits >= 0
	}
	switch {
	case stood == len(w.measured):
		return engine.StallOfGenerator
	case again >= all:
		return engine.StallOfNetwork
	case again <= all/4 && told:
		return ""
	default:
		return engine.StallUnknown
	}
}
