package prepare

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestWhatLooksBesideTheLoadGivesHostsUpAsItDoes: what watches an outage comes to the server that has taken over as soon
// as the load does.
func TestWhatLooksBesideTheLoadGivesHostsUpAsItDoes(t *testing.T) {
	w := newWorld()
	for _, beside := range []bool{false, true} {
		open := Attach
		if beside {
			open = AttachBeside
		}
		a, err := open(t.Context(), w.deps(), scenario(), &engine.Plan{}, "observer")
		if err != nil {
			t.Fatal(err)
		}
		a.Close()
		if w.opened.Reconnects != beside {
			t.Errorf("%v: %+v", beside, w.opened)
		}
	}
}
