package run

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/cost"
)

// polledAt is a poll of a warehouse with so many clusters.
func polledAt(clusters int) WarehousePoll {
	return WarehousePoll{Warehouse: &engine.Warehouse{Name: "WH", Size: "XSMALL", Type: "STANDARD", State: "STARTED",
		StartedClusters: new(clusters), MaxClusterCount: new(4)}}
}

func TestPollerTellsOfClustersThatChange(t *testing.T) {
	p, at := newPoller(), time.Unix(100, 0)
	for i, c := range []struct {
		clusters int
		told     bool
	}{{1, true}, {1, false}, {2, true}, {2, false}} {
		got := p.onPoll(polledAt(c.clusters), at, cost.Default())
		if (got.line != "") != c.told || got.warehouse == nil || got.warehouse != p.warehouse {
			t.Errorf("poll %d with %d cluster(s): %+v", i, c.clusters, got)
		}
		if !p.warehouse.PolledAt.Equal(at) {
			t.Errorf("it was polled at %v", p.warehouse.PolledAt)
		}
	}
}

func TestPollerKeepsTheWarehouseWhenAPollFails(t *testing.T) {
	p, at, lines := newPoller(), time.Unix(100, 0), 0
	p.onPoll(polledAt(1), at, cost.Default())
	failed := WarehousePoll{Err: &engine.Error{Code: engine.CodeUnavailable, Message: "The database gives no answer."}}
	for i := range 2 * failureLogInterval {
		got := p.onPoll(failed, at, cost.Default())
		if got.warehouse != nil {
			t.Fatal("a poll that failed gives a point")
		}
		if got.line != "" {
			lines++
			if got.level != engine.LogWarning || i%failureLogInterval != 0 {
				t.Errorf("failure %d says %q", i, got.line)
			}
		}
	}
	if lines != 2 || p.warehouse.Name != "WH" || !strings.Contains(p.warehouse.Error, "gives no answer") {
		t.Errorf("%d lines, %+v", lines, p.warehouse)
	}
	if got := p.onPoll(polledAt(1), at, cost.Default()); got.warehouse.Error != "" || p.failures != 0 {
		t.Errorf("it answers again: %+v", got)
	}
}

func TestPollerWithoutAWarehouse(t *testing.T) {
	p := newPoller()
	got := p.onPoll(WarehousePoll{Absent: true}, time.Unix(100, 0), cost.Default())
	if got != (pollResult{}) || p.warehouse != nil {
		t.Errorf("%+v, %+v", got, p.warehouse)
	}
}
