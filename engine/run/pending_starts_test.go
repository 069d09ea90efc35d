package run

import (
	"errors"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// row is one that is stored when it is closed.
type row chan struct{}

func (r row) Done() <-chan struct{} { return r }

func (r row) Err() error { return errors.New("not asked for") }

// TestThoseWhoEnterDoSoInOrderOrAreGivenUp: the first has no limit, and none of them counts as silent.
func TestThoseWhoEnterDoSoInOrderOrAreGivenUp(t *testing.T) {
	var e PendingStarts
	if e.FirstStored() != nil {
		t.Error("somebody enters")
	}
	begin := time.Unix(1000, 0)
	first, second := &Worker{ID: "worker-0"}, &Worker{ID: "worker-1"}
	rows := []row{make(row), make(row)}
	e.Add(begin, PendingStart{Workers: []*Worker{first}, Row: rows[0]})
	e.Add(begin, PendingStart{Workers: []*Worker{second}, Row: rows[1], Deadline: begin.Add(time.Minute)})
	if first.State.Status != engine.WorkerStarting || e.FirstStored() != (<-chan struct{})(rows[0]) {
		t.Errorf("%+v", first.State)
	}
	at := begin.Add(2 * time.Minute)
	if over := e.TakeExpired(at, false); len(over) != 1 || over[0].Workers[0] != second || !first.LastSeen.Equal(at) {
		t.Errorf("%+v, heard %v", over, first.LastSeen)
	}
	e.Add(at, PendingStart{Workers: []*Worker{second}, Row: rows[1]})
	if got := e.Pop(); got.Workers[0] != first || e.FirstStored() != (<-chan struct{})(rows[1]) {
		t.Errorf("%+v", got)
	}
	if over := e.TakeExpired(at, true); len(over) != 1 || e.FirstStored() != nil {
		t.Errorf("%+v", over)
	}
}
