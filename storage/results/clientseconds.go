package results

import (
	"context"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine/results/findings"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// ClientSeconds reads every execution of the run and says of n slots from an instant on for how long operations were in
// flight, how long of that they waited before they were sent, and how many ended. The warm-up counts.
func (f *Results) ClientSeconds(ctx context.Context, runID string, from time.Time, step time.Duration,
	n int) ([]findings.ClientSecond, error) {
	out := make([]findings.ClientSecond, n)
	parts, err := f.executionParts(ctx, runID)
	if err != nil || n == 0 || step <= 0 {
		return out, err
	}
	line := slotLine{from: from.UnixNano(), step: int64(step), n: int64(n)}
	var c record.Columns
	for _, at := range parts {
		if err := clientSecondsOf(ctx, at, &c, line, out); err != nil {
			return nil, fmt.Errorf("reading executions from %s: %w", at.name, err)
		}
	}
	return out, nil
}

func clientSecondsOf(
	ctx context.Context,
	at part,
	c *record.Columns,
	line slotLine,
	out []findings.ClientSecond,
) error {
	p, err := at.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }() // only read
	for _, err := range c.Scan(ctx, p, record.ColDueAt, record.ColStartedAt, record.ColAppElapsedMs, record.ColPosition) {
		if err != nil {
			return err
		}
		for i := range c.N {
			if c.Position[i] != 0 {
				continue
			}
			due := c.Due[i]
			end := due + record.Nanoseconds(c.Elapsed[i])
			line.spread(due, end, func(slot int64, seconds float64) { out[slot].InFlight += seconds })
			line.spread(due, min(c.Started[i], end), func(slot int64, seconds float64) { out[slot].Waiting += seconds })
			if slot := (end - line.from) / line.step; end >= line.from && slot < line.n {
				out[slot].Ended++
			}
		}
	}
	return nil
}

// slotLine is time in n slots of one length; all in ns.
type slotLine struct{ from, step, n int64 }

// spread calls add with each slot that an interval touches, and for how many seconds.
func (l slotLine) spread(from, to int64, add func(slot int64, seconds float64)) {
	from, to = max(from, l.from), min(to, l.from+l.n*l.step)
	for from < to {
		slot := (from - l.from) / l.step
		end := min(to, l.from+(slot+1)*l.step)
		add(slot, time.Duration(end-from).Seconds())
		from = end
	}
}
