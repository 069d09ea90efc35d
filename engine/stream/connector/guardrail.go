// This part holds sinks that reach beyond the process: rows that are posted to an address, and rows that stop a
// run.

package connector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// StopRun stops a run as a guardrail does; the sentence is its reason. It is ErrEnded of a run that needs nobody to
// stop it any more.
type StopRun func(ctx context.Context, runID, sentence string) error

// ErrEnded says that a run has ended, or is being ended, by something else.
var ErrEnded = errors.New("the run had ended, or was ending, already")

// stopTimeout bounds how long stopping a run may take.
const stopTimeout = 10 * time.Second

// guardrail stops runs.
type guardrail struct {
	ctx        context.Context
	query, run string
	columns    []column.Column
	stop       StopRun
	alert      AlertFunc
	stopped    map[string]bool
}

// RunColumn is the column of a query's rows that names a run, -1 where there is none.
func RunColumn(columns []column.Column) int {
	for i, c := range columns {
		if strings.EqualFold(strings.ReplaceAll(c.Name, "_", ""), "runid") {
			return i
		}
	}
	return -1
}

// NewGuardrail returns a sink that stops the run of its setting, or else the one that each row names. A run is stopped
// once. What is being stopped when ctx ends is not waited for.
func NewGuardrail(
	ctx context.Context,
	query string,
	c Config,
	columns []column.Column,
	stop StopRun,
	tell AlertFunc,
) Sink {
	return &guardrail{ctx, query, c.String("SINK.RUN_ID"), columns, stop, tell, map[string]bool{}}
}

// Write implements Sink.
func (g *guardrail) Write(b *column.Batch) error {
	at := RunColumn(g.columns)
	for i := range b.N {
		run := g.run
		if run == "" && at >= 0 {
			run = string(b.Cols[at].AppendValue(nil, i))
		}
		if run == "" || g.stopped[run] {
			continue
		}
		g.stopped[run] = true
		ctx, cancel := context.WithTimeout(g.ctx, stopTimeout)
		row := RowText(g.columns, b, i)
		err := g.stop(ctx, run, "Rule triggered: "+g.query+": "+row)
		cancel()
		g.alert.send(Alert{RunID: run, Row: row, Rows: 1}, err)
		if err != nil && !errors.Is(err, ErrEnded) {
			return fmt.Errorf("stopping the run %s: %w", run, err)
		}
	}
	return nil
}

// Close implements Sink.
func (g *guardrail) Close() error { return nil }
