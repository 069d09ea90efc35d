package live

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestTheClustersShownAreANumber and not a pointer to one, which equals no number; where the edition knows none, they
// are null.
func TestTheClustersShownAreANumber(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		clusters *int
		want     any
	}{{new(2), 2}, {new(0), 0}, {nil, nil}} {
		var p engine.LiveState
		ApplyWarehouse(&p, &engine.Warehouse{Name: "WH", StartedClusters: c.clusters}, nil)
		if got := p.CustomMetrics.SFBench["clusters"]; got != c.want {
			t.Errorf("the clusters are %#v, not %#v", got, c.want)
		}
	}
}
