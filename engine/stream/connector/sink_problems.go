package connector

import (
	"sync"
	"time"
)

// SinkProblem is what keeps a sink from taking rows; it is tried again.
type SinkProblem struct {
	// Since is when the first attempt has failed, and Attempts how many have since.
	Since    time.Time
	Attempts int
	Message  string
}

// SinkProblems keep what sinks of queries wait for. The zero value is empty; it is safe for concurrent use.
type SinkProblems struct {
	mu sync.Mutex
	of map[int64]SinkProblem
}

// For returns what takes the attempts of a query's sink: why one has failed, nil when there is nothing to wait for.
func (t *SinkProblems) For(id int64) func(error) {
	return func(err error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if err == nil {
			delete(t.of, id)
			return
		}
		if t.of == nil {
			t.of = map[int64]SinkProblem{}
		}
		one, there := t.of[id]
		if !there {
			one.Since = time.Now().UTC()
		}
		one.Attempts, one.Message = one.Attempts+1, err.Error()
		t.of[id] = one
	}
}

// Get returns what the sink of a query waits for, if anything.
func (t *SinkProblems) Get(id int64) (SinkProblem, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, there := t.of[id]
	return one, there
}

// Wrap returns a Tell that hands alerts on, and tells of those that are tried again.
func (t *SinkProblems) Wrap(id int64, on AlertFunc) AlertFunc {
	tried := t.For(id)
	return func(a Alert) {
		if a.Retrying {
			tried(failure(a.Failure))
			return
		}
		tried(nil)
		on(a)
	}
}

// failure is an error with a text.
type failure string

func (f failure) Error() string { return string(f) }
