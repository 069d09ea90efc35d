// This part follows the warehouse of a run beside its load: it polls it, adds up
// what it costs, and sets it back when the run is over.

package run

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// DefaultPollInterval is how often a run's warehouse is asked for.
const DefaultPollInterval = 5 * time.Second

// A search whose steps are short asks for the warehouse as often as it takes to see
// each of them so many times.
const (
	minPollInterval = time.Second
	pollsPerStep    = 3
)

// WarehousePollInterval is how often the warehouse of a run is asked for, every otherwise.
func WarehousePollInterval(every time.Duration, sc engine.Scenario, searches bool) time.Duration {
	if searches {
		every = min(every, max(minPollInterval, sc.FindMax.StepDuration()/pollsPerStep))
	}
	return every
}

// DescribeWarehouse describe a warehouse for the log of its run.
func DescribeWarehouse(w *engine.Warehouse) string {
	kind := w.Type
	if g := w.Generation; g != "" && kind == "STANDARD" {
		kind += " of generation " + g
	}
	text := fmt.Sprintf("The warehouse %s (%s, %s) is %s", w.Name, w.Size, kind, w.State)
	if w.StartedClusters == nil || w.MaxClusterCount == nil {
		return text
	}
	return fmt.Sprintf("%s with %d of %s", text, *w.StartedClusters, engine.Count(max(1, *w.MaxClusterCount), "cluster"))
}

// adapterTimeout bounds one conversation with an adapter beside the load.
const adapterTimeout = 30 * time.Second

// restoreTimeout bounds setting a target back.
const restoreTimeout = 20 * time.Second

// WarehousePoll is what one poll of a run's warehouse gave.
type WarehousePoll struct {
	At        time.Time
	Warehouse *engine.Warehouse
	// Err is why there is none. Absent: the adapter knows no warehouse, and is not asked again.
	Err    error
	Absent bool
}

// PollWarehouse polls the warehouse of a run, on connections of its own, until ctx ends or the
// adapter knows of no warehouse. A poll that fails is told and changes nothing.
func PollWarehouse(ctx context.Context, every time.Duration, deps prepare.Deps, run engine.Run, plan *engine.Plan,
	polls chan<- WarehousePoll) {
	var a *prepare.Attached
	defer func() {
		if a != nil {
			a.Close()
		}
	}()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		var p WarehousePoll
		a, p = pollOnce(ctx, deps, a, run, plan)
		select {
		case <-ctx.Done():
			return
		case polls <- p:
		}
		if p.Absent {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// pollOnce asks once, on the connections that there are, or on new ones.
func pollOnce(ctx context.Context, deps prepare.Deps, a *prepare.Attached, run engine.Run,
	plan *engine.Plan) (*prepare.Attached, WarehousePoll) {
	p := WarehousePoll{At: time.Now()}
	if a == nil {
		if a, p.Err = prepare.Attach(ctx, deps, run.Scenario, plan, "poller"); p.Err != nil {
			return nil, p
		}
	}
	ctx, cancel := context.WithTimeout(ctx, adapterTimeout)
	defer cancel()
	answer, err := a.CallAdapter(ctx, plugin.AdapterRequest{Op: plugin.OpPoll, Warehouse: plan.Warehouse})
	p.At = time.Now()
	switch {
	case err != nil:
		p.Err = err
	case answer.Warehouse == nil:
		p.Absent = true
	default:
		p.Warehouse = answer.Warehouse
	}
	return a, p
}

// RestoreTarget undoes what the preparation of a run started: a warehouse that was suspended
// is suspended again. It returns a sentence when that failed. Its time is its own: the
// process may be shutting down. Where it is needed for others it is left.
func RestoreTarget(
	deps prepare.Deps,
	run engine.Run,
	plan *engine.Plan,
	needed bool,
	log zerolog.Logger,
) (failed string) {
	if plan == nil || len(plan.Restore) == 0 {
		return ""
	}
	log = log.With().Str("run_id", run.RunID).Logger()
	if needed {
		log.Info().Msg("the warehouse is left running: another run is live")
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), restoreTimeout)
	defer cancel()
	a, err := prepare.Attach(ctx, deps, run.Scenario, plan, "set back")
	if err == nil {
		defer a.Close()
		err = a.Database().Exec(ctx, plan.Restore...)
	}
	if err != nil {
		log.Warn().Err(err).Msg("the warehouse could not be set back")
		return "The warehouse could not be set back to how it was before the run: " + engine.ErrorText(err)
	}
	log.Info().Msg("the warehouse is suspended again, as it was before the run")
	return ""
}
