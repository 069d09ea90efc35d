package worker

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// TestANodeWithoutDiskTakesNoRunWorkers, says why with each status, and takes them again when there is room.
func TestANodeWithoutDiskTakesNoRunWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Int64
		free.Store(900 << 20)
		s := connectAhead(t, t.TempDir(), newFakeLoad(), nil, 0, func(o *Options) {
			o.Reserve = 500 << 20
			o.Space = func(string) (int64, int64, bool) { return free.Load(), 10 << 30, true }
		})
		last := func() protocol.Status {
			time.Sleep(1100 * time.Millisecond)
			synctest.Wait()
			all := messages[protocol.Status](s)
			return all[len(all)-1]
		}
		if st := last(); !st.AcceptingWork || st.Refusal != "" {
			t.Fatalf("%+v", st)
		}
		free.Store(560 << 20)
		if st := last(); st.AcceptingWork || st.Draining ||
			!strings.Contains(st.Refusal, "560 MB are free, of which 500 MB") {
			t.Errorf("%+v", st)
		}
		if s.node.Ready() || s.node.State().Accepting {
			t.Error("it is ready")
		}
		s.send(assign())
		synctest.Wait()
		if got := messages[protocol.RunRejected](s); len(got) != 1 || !strings.Contains(got[0].Err.Message, "disk is full") {
			t.Errorf("%+v", got)
		}
		free.Store(570 << 20) // it does not come and go
		if st := last(); st.AcceptingWork {
			t.Errorf("%+v", st)
		}
		free.Store(700 << 20)
		if st := last(); !st.AcceptingWork || st.Refusal != "" || !s.node.Ready() {
			t.Errorf("%+v", st)
		}
		s.end()
	})
}
