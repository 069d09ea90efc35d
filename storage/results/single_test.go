package results

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
	"github.com/loadstone-db/loadstone/engine/store"
)

// TestPartsAreReadAsTheyWereRecorded: every execution of a part comes once, with all that was recorded of it, and the
// seconds add up to the same.
func TestPartsAreReadAsTheyWereRecorded(t *testing.T) {
	f := open(t)
	recs := someExecutions(70_000) // more than a row group
	for i := range recs {
		r := &recs[i]
		r.Kind, r.Statement, r.ConnectionID = engine.Kind(i%3), uint16(i%3), uint32(i%5)
		r.ScheduleLag, r.Decode, r.Retries, r.Step = int64(i%7)*1000, int64(i%11), uint8(i%2), uint16(i%4)
		r.Warmup = i < 500
		if i%100 == 0 {
			r.Success, r.ErrorID = false, uint32(1+i/100%4)
		}
	}
	parts := put(t, f, "w", recs)
	s := rollup.New(time.Unix(0, recs[0].DueAt))
	if err := f.RollUp(t.Context(), "run", parts[0].Name, s); err != nil {
		t.Fatal(err)
	}
	i, wrong := 0, 0
	if err := f.ReadExecutions(t.Context(), "run", parts[0].Name, func(e *rollup.Executions) error {
		for row := range e.DueNs {
			r := &recs[i]
			i++
			if e.DueNs[row] != r.DueAt || e.StartedNs[row] != r.StartedAt || e.ElapsedNs[row] != r.Elapsed ||
				e.ElapsedMs[row] != float64(r.Elapsed)/1e6 || e.LagMs[row] != float64(r.ScheduleLag)/1e6 ||
				e.DecodeNs[row] != r.Decode || uint32(e.Connection[row]) != r.ConnectionID || uint32(e.Seq[row]) != r.Seq ||
				e.Step[row] != int32(r.Step) || e.Retries[row] != int32(r.Retries) || e.Rows[row] != r.Rows ||
				e.Warmup[row] != r.Warmup || e.Success[row] != r.Success || e.Kind.At(row) != r.Kind.String() ||
				e.Statement.At(row) != statements[r.Statement].ID || e.Worker.At(row) != "w" ||
				e.Class.At(row) != string(dictionary[r.ErrorID].Class) || e.Code.At(row) != dictionary[r.ErrorID].Code ||
				e.Message.At(row) != dictionary[r.ErrorID].Message || e.QueryID.At(row) != "" {
				wrong++
			}
		}
		return nil
	}); err != nil || i != len(recs) || wrong != 0 {
		t.Fatalf("%d executions of %d, %d of them wrong, %v", i, len(recs), wrong, err)
	}
	var operations, failures, rows int64
	for _, c := range s.Run {
		operations, failures, rows = operations+c.Operations, failures+c.Errors, rows+c.Rows
	}
	if operations != 70_000 || failures != 700 || rows != 70_000 || s.Executions != 70_000 {
		t.Errorf("%d operations, %d errors, %d rows, %d executions", operations, failures, rows, s.Executions)
	}
}

// TestSegmentsAreStoredBesideParts: a later claim's segment stays when an earlier one's are removed, parts always.
func TestSegmentsAreStoredBesideParts(t *testing.T) {
	f := open(t)
	parts := put(t, f, "w", someExecutions(10))
	s := rollup.New(time.Unix(0, 1_790_000_000_000_000_000))
	if err := f.RollUp(t.Context(), "run", parts[0].Name, s); err != nil {
		t.Fatal(err)
	}
	content, rows, err := segment.Bytes(&rollup.Run{Run: engine.Run{RunID: "run"}, Seconds: s})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	sha := hex.EncodeToString(sum[:])
	var names []string
	for epoch := range int64(4) {
		a := engine.Artifact{RunID: "run", Name: segment.Name(epoch, sha), SHA256: sha, SizeBytes: int64(len(content))}
		if err := f.PutSegment(t.Context(), a, content); err != nil {
			t.Fatal(err)
		}
		names = append(names, a.Name)
	}
	if err := f.RemoveSegments(t.Context(), "run", 3, names[1]); err != nil {
		t.Fatal(err)
	}
	for epoch, name := range names {
		file, err := f.OpenSegment(t.Context(), "run", name)
		if kept := epoch == 1 || epoch == 3; kept != (err == nil) || !kept && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the segment of epoch %d: %v", epoch, err)
		}
		if err == nil {
			if file.Rows() != rows || file.RunID() != "run" {
				t.Errorf("%d rows of %q", file.Rows(), file.RunID())
			}
			_ = file.Close()
		}
	}
	if err := f.RemoveSegment(t.Context(), "run", names[3]); err != nil {
		t.Error(err)
	}
	stored, _, err := f.Open(t.Context(), "run", parts[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	_ = stored.Close()
	// A segment is no part: figures are those of the executions alone.
	fig, _, err := f.FiguresByWorker(t.Context(), "run", nil, engine.Window{})
	if err != nil || fig.Accounting.Recorded != 10 {
		t.Errorf("%d recorded, %v", fig.Accounting.Recorded, err)
	}
	if err := f.PutSegment(t.Context(), engine.Artifact{RunID: "run", Name: names[0], SHA256: sha, SizeBytes: 3},
		bytes.Clone(content)); err == nil {
		t.Error("a segment that is not what it is said to be is stored")
	}
}
