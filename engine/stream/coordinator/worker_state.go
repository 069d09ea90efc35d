// This part keeps servers that see a worker otherwise than each other from writing that into the catalog in turns.
// Each writes how it sees the workers, and hears of what the others write; that a node drains one knows before another,
// and one may reach a node that another does not.

package coordinator

import (
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/backoff"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
)

// minResendDelay is how long a server waits that sees a worker otherwise than the catalog has it, though it has told
// that already: another server sees it so. It doubles up to rarely, since they may never agree.
const minResendDelay, maxResendDelay = time.Second, time.Minute

// SentStates is what a server has told of workers last, by worker. It is not safe for concurrent use.
type SentStates map[string]sentState

type sentState struct {
	state catalog.WorkerState
	wait  backoff.Backoff
	until time.Time
}

// Reconcile forgets what was told of workers that the server sees otherwise now, whether or not the catalog has them
// so.
func (v SentStates) Reconcile(workers []catalog.Worker) {
	for _, w := range workers {
		if v[w.Host].state != w.State {
			delete(v, w.Host)
		}
	}
}

// Due leaves of what the catalog has otherwise what is to be told now: what has changed here at once, and the rest when
// others have had the time to see it too.
func (v SentStates) Due(changed []catalog.Worker, now time.Time) []catalog.Worker {
	return slices.DeleteFunc(changed, func(w catalog.Worker) bool {
		was := v[w.Host]
		return was.state == w.State && now.Before(was.until)
	})
}

// MarkSent takes note that they are in the catalog now.
func (v SentStates) MarkSent(workers []catalog.Worker, now time.Time) {
	for _, w := range workers {
		is := v[w.Host]
		if is.state != w.State {
			is = sentState{state: w.State, wait: backoff.Backoff{Min: minResendDelay, Max: maxResendDelay}}
		}
		is.until = now.Add(is.wait.Next())
		v[w.Host] = is
	}
}
