package observe

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/findings"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// Source reads what was kept of a run.
type Source interface {
	// ReadServer gives what the server was seen to do to a reader, in order, and says how many parts there are.
	ReadServer(ctx context.Context, runID string, into record.ServerReader) (parts int, err error)
	// ClientSeconds says of n slots from an instant on how long operations were in flight.
	ClientSeconds(ctx context.Context, runID string, from time.Time, step time.Duration, n int) ([]findings.ClientSecond,
		error)
}

// Measured says what of a run is judged.
type Measured struct {
	Start, From, To time.Time
	// Processors are those of the server's machine, 0 where that is not known.
	Processors int
}

// MeasuredOf is what is judged of a run with these figures, and in this environment.
func MeasuredOf(run engine.Run, f *engine.Figures, e *engine.Environment) Measured {
	m := Measured{Start: run.StartTime.Time, From: run.WarmupEndTime.Time, To: run.MeasurementEndTime.Time}
	if f != nil && !f.MeasuredFrom.IsZero() && !f.MeasuredTo.IsZero() {
		m.From, m.To = f.MeasuredFrom.Time, f.MeasuredTo.Time
	}
	if m.From.IsZero() {
		m.From = m.Start
	}
	if m.To.IsZero() {
		m.To = run.EndTime.Time
	}
	if e != nil && e.TargetIsLocal {
		m.Processors = e.CPUs
	}
	return m
}

// maxPoints bounds what a chart is given.
const maxPoints = 900

// Read judges what was kept of a run. Observed is false where nothing was.
func Read(ctx context.Context, from Source, runID string, m Measured) (engine.ServerView, error) {
	c := findings.NewCollector()
	parts, err := from.ReadServer(ctx, runID, c)
	if err != nil {
		return engine.ServerView{}, fmt.Errorf("reading what the server did: %w", err)
	}
	if parts == 0 || c.Looks() == 0 {
		reason := "No server samples are stored for this run."
		for _, text := range c.Missing() {
			reason += " " + text
		}
		return NotObserved(reason), nil
	}
	begin, step, n := c.Grid()
	client, err := from.ClientSeconds(ctx, runID, begin, step, n)
	if err != nil {
		return engine.ServerView{}, fmt.Errorf("reading the client's time: %w", err)
	}
	return view(c, client, m, true), nil
}

// NotObserved is the view of a run of whose server nothing is known.
func NotObserved(reason string) engine.ServerView {
	return engine.ServerView{Reason: reason, Missing: []string{}, Findings: []engine.Finding{},
		Seconds: []engine.ServerSecond{}, Events: []engine.ServerEvent{}, Blockers: []engine.Blocker{}}
}

// view judges what a collector has. Exact: the client's seconds are those of the record.
func view(c *findings.Collector, client []findings.ClientSecond, m Measured, exact bool) engine.ServerView {
	verdict := c.Judge(findings.Input{Client: client, From: m.From, To: m.To, Processors: m.Processors})
	v := engine.ServerView{Observed: true, Missing: c.Missing(), Findings: verdict.Findings, Time: verdict.Time,
		Seconds: c.Seconds(m.Start, maxPoints), Events: c.Events(), Blockers: findings.Blockers(c.Last()), Live: !exact}
	if v.Findings == nil {
		v.Findings = []engine.Finding{}
	}
	if v.Events == nil {
		v.Events = []engine.ServerEvent{}
	}
	begin, step, _ := c.Grid()
	for i := range v.Seconds {
		s := &v.Seconds[i]
		lo := int(s.At.Sub(begin) / step)
		hi := lo + int(s.Seconds/step.Seconds())
		inFlight := 0.0
		for k := lo; k < min(hi, len(client)); k++ {
			inFlight += client[k].InFlight
			s.Slow = s.Slow || k < len(verdict.Slow) && verdict.Slow[k]
		}
		if exact {
			inFlight /= max(s.Seconds, step.Seconds())
			s.InFlight = &inFlight
		}
	}
	return v
}

// maxClient bounds the seconds of the client that are remembered while a run goes on.
const maxClient = 7200

// Client tells of a second of the client that ended then, as far as it is known while the run goes on: how many
// operations were in flight, and how many ended.
func (o *Observer) Client(at time.Time, inFlight, ended float64) {
	if o == nil {
		return
	}
	o.clientMu.Lock()
	defer o.clientMu.Unlock()
	if len(o.client) >= maxClient {
		o.client = append(o.client[:0], o.client[maxClient/2:]...)
	}
	o.client = append(o.client, clientPoint{at, findings.ClientSecond{InFlight: inFlight, Ended: ended}})
}

const (
	// judgeEvery is for how long a judged view is the answer to all who ask, and it is that for judgeShare times as long
	// as judging took: the load needs the processor.
	judgeEvery, judgeShare = time.Second, 50
)

// judgedView is what was judged, of what, and until when it is the answer.
type judgedView struct {
	of    Measured
	view  engine.ServerView
	until time.Time
}

// View is what was seen so far, from an instant on. Who asks while it is fresh, or while another judges, shares it.
func (o *Observer) View(m Measured) engine.ServerView {
	j := o.judged.Load()
	if j == nil || j.of != m || !time.Now().Before(j.until) {
		j = o.judge(m)
	}
	v := j.view
	o.mu.Lock()
	defer o.mu.Unlock()
	v.Reason = o.reason
	return v
}

// judge makes a view, unless another has done so meanwhile.
func (o *Observer) judge(m Measured) *judgedView {
	o.viewMu.Lock()
	defer o.viewMu.Unlock()
	begin := time.Now()
	if j := o.judged.Load(); j != nil && j.of == m && begin.Before(j.until) {
		return j
	}
	o.collect()
	j := &judgedView{of: m, view: o.seenSoFar(m)}
	took := time.Since(begin)
	j.until = begin.Add(took + max(judgeEvery, judgeShare*took))
	o.judged.Store(j)
	return j
}

// seenSoFar judges. viewMu is held.
func (o *Observer) seenSoFar(m Measured) engine.ServerView {
	o.clientMu.Lock()
	points := slices.Clone(o.client)
	o.clientMu.Unlock()
	if o.collector.Looks() == 0 {
		v := NotObserved("")
		v.Missing, v.Live = o.collector.Missing(), true
		return v
	}
	begin, step, n := o.collector.Grid()
	client := make([]findings.ClientSecond, n)
	for _, p := range points {
		// The second before the report is most of what it tells of.
		if i := int(p.at.Add(-time.Second/2).Sub(begin) / step); i >= 0 && i < n {
			client[i].InFlight += p.InFlight
			client[i].Ended += p.Ended
		}
	}
	// The last slot is not over.
	m.To = begin.Add(step * time.Duration(max(0, n-1)))
	return view(o.collector, client, m, false)
}
