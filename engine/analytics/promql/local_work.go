package promql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// What a work may come to, and all works of a query together, in bytes; and how many answers of a node a query reads
// at once, and how many works it does here.
const (
	maxResultBytes = 256 << 20
	maxQueryBytes  = 512 << 20
	maxConcurrent  = 4
)

// slots bound how many do something at once.
type slots chan struct{}

// acquire waits for a slot, or until nobody wants it any more.
func (s slots) acquire(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s slots) release() { <-s }

// checkSize refuses a query that comes to too much, by what its works are said to come to.
func (q *dispatch) checkSize(w *work, size int64) error {
	q.announced += size - w.size // of a work that is done again, what it comes to now
	w.size = size
	if size <= maxResultBytes && q.announced <= maxQueryBytes {
		return nil
	}
	return &engine.Error{Code: engine.CodeTooLarge,
		Message: fmt.Sprintf("The query comes to %d MB before it is merged; %d MB of one part and %d MB of all are the most.",
			q.announced>>20, maxResultBytes>>20, maxQueryBytes>>20),
		Hint: "Aggregate (sum by …), ask for fewer runs or less time, or take a larger step."}
}

// localWork is a work that this process does.
type localWork struct {
	key      protocol.WorkKey
	task     Task
	segments []Segment
}

// evaluate does a work here.
func (q *dispatch) evaluate(ctx context.Context, w localWork) {
	if !q.evaluations.acquire(ctx) {
		return
	}
	defer q.evaluations.release()
	q.Assigned(w.key, protocol.OwnNode, 1, true)
	var file bytes.Buffer
	e := event{key: w.key, fetched: true, result: &LeafResult{}}
	_, _, e.err = q.Own.Evaluate(ctx, w.task, w.segments, &file)
	if e.bytes = file.Len(); e.err == nil {
		*e.result, e.err = Read(bytes.NewReader(file.Bytes()), int64(e.bytes))
	}
	var read *ReadError
	if errors.As(e.err, &read) {
		e.err = workError(protocol.WorkFailed{Code: "unavailable", Reason: read.Error()})
	}
	e.at = time.Now()
	e.announced = e.at // nothing is transferred
	if ctx.Err() == nil {
		q.events.Put(e)
	}
}
