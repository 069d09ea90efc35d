package ingest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/artifact"
	"github.com/loadstone-db/loadstone/engine/ingest"
	"github.com/loadstone-db/loadstone/engine/refresh"
	"github.com/loadstone-db/loadstone/engine/rollup"
	"github.com/loadstone-db/loadstone/engine/store"
)

// world is a run with parts of ten executions each, and what was taken in of it.
type world struct {
	parts   map[string]string // name: bytes
	sums    map[string]string
	damaged string // a part that is what was recorded and cannot be read to its end
	gone    bool
	away    error
	taken   *rollup.Run
	puts    int
	dropped bool
}

func newWorld(names ...string) *world {
	w := &world{parts: map[string]string{}, sums: map[string]string{}}
	for _, name := range names {
		sum := sha256.Sum256([]byte(name))
		w.parts[name], w.sums[name] = name, hex.EncodeToString(sum[:])
	}
	return w
}

func (w *world) Artifacts(context.Context, string) ([]engine.Artifact, error) {
	list := []engine.Artifact{{RunID: "r", Name: "enrichment-1", Kind: "enrichment"}}
	for name, sum := range w.sums {
		list = append(list, engine.Artifact{RunID: "r", Name: name, SHA256: sum, Kind: artifact.KindExecutions})
	}
	return list, nil
}

func (w *world) Warehouse(context.Context, string) ([]engine.WarehousePoint, error) { return nil, nil }

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

func (w *world) Open(_ context.Context, _, name string) (io.ReadSeekCloser, int64, error) {
	if w.away != nil {
		return nil, 0, w.away
	}
	text, ok := w.parts[name]
	if !ok {
		return nil, 0, store.ErrNotFound
	}
	return file{bytes.NewReader([]byte(text))}, int64(len(text)), nil
}

func (w *world) RollUp(_ context.Context, _, name string, into *rollup.Seconds) error {
	for i := range 10 {
		if name == w.damaged && i == 7 {
			return errors.New("damaged Parquet data")
		}
		into.Add(&rollup.Execution{ElapsedNs: 1e6, Success: true, Kind: "POINT_LOOKUP"})
	}
	return nil
}

func (w *world) Begin(context.Context, refresh.Claim) error { return nil }

func (w *world) Fingerprint(context.Context, string) (string, error) {
	if w.taken == nil {
		return "", nil
	}
	return w.taken.Fingerprint, nil
}

func (w *world) PutRun(_ context.Context, _ refresh.Claim, r rollup.Run, _ func(context.Context) error) (rows,
	bytes int64,
	err error) {
	w.taken = &r
	w.puts++
	return r.Seconds.Executions, 1, nil
}

func (w *world) DropRun(context.Context, refresh.Claim) error {
	w.dropped, w.taken = true, nil
	return nil
}

func (w *world) take(t *testing.T) (refresh.Result, error) {
	t.Helper()
	in := &ingest.Ingest{Store: w, Record: w, Target: w,
		Detail: func(context.Context, string) (engine.RunDetail, error) {
			if w.gone {
				return engine.RunDetail{}, &engine.Error{Code: engine.CodeNotFound, Cause: store.ErrNotFound}
			}
			return engine.RunDetail{Run: engine.Run{RunID: "r"}}, nil
		}}
	return in.Run(t.Context(), refresh.Claim{Task: refresh.Task{Table: ingest.Table, Subtask: "r"}, Epoch: 1}, nil)
}

func TestARunIsTakenInAgainWhenItHasChanged(t *testing.T) {
	w := newWorld("a", "b")
	for i := range 3 {
		r, err := w.take(t)
		if err != nil || r.Unchanged != (i > 0) || w.puts != 1 || w.taken.Seconds.Executions != 20 {
			t.Fatalf("time %d: %+v, %v, %d puts", i, r, err, w.puts)
		}
	}
	later := newWorld("a", "b", "c")
	w.parts, w.sums = later.parts, later.sums
	if r, err := w.take(t); err != nil || r.Unchanged || w.puts != 2 || w.taken.Seconds.Executions != 30 {
		t.Errorf("with another part: %+v, %v", r, err)
	}
	w.gone = true
	if r, err := w.take(t); err != nil || !r.Gone || !w.dropped {
		t.Errorf("a run that was deleted: %+v, %v", r, err)
	}
}

// TestPartsThatAreLostMarkTheRun: what is there is taken in, once, and the run says what is not.
func TestPartsThatAreLostMarkTheRun(t *testing.T) {
	w := newWorld("a", "b", "c", "d")
	delete(w.parts, "a")
	w.parts["b"] = "other bytes"
	w.damaged = "c"
	r, err := w.take(t)
	if err != nil || w.taken.Seconds.Executions != 10 || w.taken.Parts != 4 || len(w.taken.Problems) != 3 ||
		!strings.Contains(r.Note, "3 of 4") {
		t.Fatalf("%+v, %v, taken in: %+v", r, err, w.taken)
	}
	all := strings.Join(w.taken.Problems, "\n")
	for _, want := range []string{"a is not there.", "b is not what was recorded", "c is damaged."} {
		if !strings.Contains(all, want) {
			t.Errorf("the run says %q, not %q", all, want)
		}
	}
	// What comes back is taken in.
	w.parts["a"] = "a"
	if r, err := w.take(t); err != nil || r.Unchanged || w.taken.Seconds.Executions != 20 {
		t.Errorf("a part that is back: %+v, %v", r, err)
	}
	// Storage that does not answer says nothing about the parts.
	w.away = store.ErrUnavailable
	if _, err := w.take(t); !errors.Is(err, store.ErrUnavailable) || w.puts != 2 {
		t.Errorf("storage that is away: %v", err)
	}
}
