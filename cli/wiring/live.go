package wiring

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/ingest"
	"github.com/loadstone-db/loadstone/engine/base/backoff"
	"github.com/loadstone-db/loadstone/engine/outbound/metrics"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// observedStore is the control store of the orchestrator: what it has taken of a run goes on to the live series, and
// out of the server, once there is any of that.
type observedStore struct {
	run.ControlStore
	series atomic.Pointer[ingest.LiveWriter]
	export atomic.Pointer[telemetryExport]
	// notifier are told of runs that have ended.
	notifier atomic.Pointer[notify.Notifier]
	// streams has the queries that read what runs tell.
	streams *system.Hub
}

// SaveTick implements writer.Store.
func (w *observedStore) SaveTick(ctx context.Context, t store.Tick) error {
	err := w.ControlStore.SaveTick(ctx, t)
	if err == nil {
		w.series.Load().Tick(&t)
		w.export.Load().tick(&t)
		w.streams.Tick(&t)
	} else if errors.Is(err, store.ErrFenced) {
		w.export.Load().runTakenOver(t.RunID)
	}
	return err //nolint:wrapcheck // it is the store
}

// SaveWarehouse implements run.ControlStore.
func (w *observedStore) SaveWarehouse(ctx context.Context, runID string, epoch int64, p engine.WarehousePoint) error {
	err := w.ControlStore.SaveWarehouse(ctx, runID, epoch, p)
	if err == nil {
		w.series.Load().Poll(runID, epoch, p)
		w.export.Load().poll(runID, epoch, p)
		w.streams.Poll(runID, p)
	}
	return err //nolint:wrapcheck // it is the store
}

// Transition implements writer.Store.
func (w *observedStore) Transition(ctx context.Context, t store.Transition) ([]engine.Event, error) {
	events, err := w.ControlStore.Transition(ctx, t)
	if err == nil {
		w.export.Load().transition(t)
		w.streams.Transition(t, events, time.Now())
		if t.To.Terminal() {
			w.notifier.Load().Ended(t.RunID)
		}
	}
	return events, err //nolint:wrapcheck // it is the store
}

// startLive begins to bring the seconds of live runs into the results database.
func (t *Tables) startLive() {
	series := ingest.StartLive(ingest.LiveOptions{Run: t.s.Store.Run, Log: t.s.Log, PerHour: t.s.warehouseRate,
		Target: func(ctx context.Context) (ingest.LiveTarget, error) { return t.Database(ctx) }})
	t.s.watched.series.Store(series)
	t.s.collectors = append(t.s.collectors, metrics.NewLive(series.Counts))
	t.s.onClose(func(context.Context) error { series.Close(); return nil })
}

// warehouseRate is what a warehouse takes by the price list as it is now.
func (s *Services) warehouseRate(w engine.Warehouse) (credits float64, known bool) {
	return s.prices.Prices().PerHour(w)
}

// renewSegments has runs taken in again whose segments an earlier version has written, once in the life of a server:
// they lack series.
func (t *Tables) renewSegments() {
	t.onceInBackground(func(ctx context.Context) error {
		n, err := t.renew(ctx)
		if n > 0 {
			t.s.Log.Info().Int64("runs", n).Msg("runs of an earlier version are taken in again, for the series that they lack")
		}
		return err
	})
}

// onceInBackground does something once in the life of a server, and tries again until it succeeds or the server ends.
func (t *Tables) onceInBackground(once func(ctx context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.s.onClose(func(context.Context) error { stop(); <-done; return nil })
	go func() {
		defer close(done)
		again := backoff.Backoff{Min: time.Second, Max: time.Minute}
		for once(ctx) != nil && again.Wait(ctx) {
		}
	}()
}

func (t *Tables) renew(ctx context.Context) (int64, error) {
	db, err := t.Database(ctx)
	if err != nil {
		return 0, err
	}
	runs, err := db.Outdated(ctx)
	if err != nil || len(runs) == 0 {
		return 0, err
	}
	return t.s.Store.TakeInAgain(ctx, ingest.Table, runs)
}
