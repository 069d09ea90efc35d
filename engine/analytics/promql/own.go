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
	mostAnswer = 256 << 20
	mostQuery  = 512 << 20
	atOnce     = 4
)

// slots bound how many do something at once.
type slots chan struct{}

// take waits for a slot, or until nobody wants it any more.
func (s slots) take(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s slots) free() { <-s }

// comesTo refuses a query that comes to too much, by what its works are said to come to.
func (q *query) comesTo(w *work, size int64) error {
	q.announced += size - w.size // of a work that is done again, what it comes to now
	w.size = size
	if size <= mostAnswer && q.announced <= mostQuery {
		return nil
	}
	return &engine.Error{Code: engine.CodeTooLarge,
		Message: fmt.Sprintf("The query comes to %d MB before it is merged; %d MB of one part and %d MB of all are the most.",
			q.announced>>20, mostAnswer>>20, mostQuery>>20),
		Hint: "Aggregate (sum by …), ask for fewer runs or less time, or take a larger step."}
}

// ownWork is a work that this process does.
type ownWork struct {
	key      protocol.WorkKey
	task     Task
	segments []Segment
}

// evaluate does a work here.
func (q *query) evaluate(ctx context.Context, w ownWork) {
	if !q.evaluations.take(ctx) {
		return
	}
	defer q.evaluations.free()
	q.Assigned(w.key, protocol.OwnNode, 1, true)
	var file bytes.Buffer
	e := event{key: w.key, fetched: true, answer: &Answer{}}
	_, _, e.err = q.Own.Evaluate(ctx, w.task, w.segments, &file)
	if e.bytes = file.Len(); e.err == nil {
		*e.answer, e.err = Read(bytes.NewReader(file.Bytes()), int64(e.bytes))
	}
	var read *ReadError
	if errors.As(e.err, &read) {
		e.err = failureOf(protocol.WorkFailed{Code: "unavailable", Reason: read.Error()})
	}
	e.at = time.Now()
	e.announced = e.at // nothing is transferred
	if ctx.Err() == nil {
		q.events.Put(e)
	}
}
