package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/storage/results"
)

// withRecord is a server whose run has 300 executions, of which every third failed.
func withRecord(t *testing.T) (*bench, string) {
	t.Helper()
	kept, err := results.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, func(o *server.Options) { o.Files = kept })
	run := b.createRun("recorded")
	dir := t.TempDir()
	w, err := record.NewWriter(record.WriterOptions{Dir: dir, RunID: run.RunID, ResultID: "w", WorkerID: "worker-0",
		Statements: []engine.Statement{{ID: "lookup"}}, Errors: func(uint32) engine.ExecutionError {
			return engine.ExecutionError{Class: engine.ErrClassConstraint, Code: "23505",
				Message: "Key (id)=(42) already exists, <b>"}
		}})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC).UnixNano()
	for i := range 300 {
		e := engine.Execution{DueAt: begin + int64(i)*1e7, StartedAt: begin + int64(i)*1e7, Elapsed: int64(i+1) * 1e5,
			Seq: uint32(i), Success: i%3 != 0}
		if !e.Success {
			e.ErrorID = 1
		}
		if err := w.Write([]engine.Execution{e}); err != nil {
			t.Fatal(err)
		}
	}
	parts, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range parts {
		if err := kept.Put(context.Background(), a, record.LocalFile(filepath.Join(dir, a.Name))); err != nil {
			t.Fatal(err)
		}
		if err := b.store.SaveArtifact(context.Background(), 0, a); err != nil {
			t.Fatal(err)
		}
	}
	return b, run.RunID
}

func read[T any](t *testing.T, a answer) (v T) {
	t.Helper()
	if a.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", a.StatusCode, a.body)
	}
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestExecutionsArePagedAndFiltered(t *testing.T) {
	t.Parallel()
	b, id := withRecord(t)
	ask := func(query string) executions.ExecutionPage {
		t.Helper()
		return read[executions.ExecutionPage](t, b.do("GET", "/api/v1/runs/"+id+"/executions?"+query, nil))
	}
	seen, cursor := 0, ""
	for {
		page := ask("outcome=failed&sort=latency&limit=30&cursor=" + cursor)
		for _, e := range page.Executions {
			if want := uint32(297 - 3*seen); e.Seq != want || e.Success || e.ErrorCode != "23505" {
				t.Fatalf("number %d is %+v", seen, e)
			}
			seen++
		}
		if cursor = url.QueryEscape(page.NextCursor); cursor == "" {
			break
		}
	}
	if seen != 100 {
		t.Errorf("%d failed", seen)
	}
	cell := ask("from=2026-11-01T12:00:01Z&until=2026-11-01T12:00:02Z&over_ms=10&upto_ms=15&sort=latency&order=asc" +
		"&limit=500")
	if n := len(cell.Executions); n != 50 || cell.Executions[0].AppElapsedMs != 10.1 || cell.Record.Complete {
		t.Errorf("%d in the cell, %+v", n, cell.Record)
	}
	exact := ask("error_message=" + url.QueryEscape("Key (id)=(42) already exists, <b>"))
	if len(exact.Executions) != 50 || exact.NextCursor == "" || strings.Contains(exact.Executions[0].ErrorMessage, "42") {
		t.Errorf("%d with the message, %+v", len(exact.Executions), exact.Executions[:1])
	}
	if n := len(ask("kind=DELETE").Executions); n != 0 {
		t.Errorf("%d deleted", n)
	}
}

func TestWhatIsAskedOfRecordsIsChecked(t *testing.T) {
	t.Parallel()
	b, id := withRecord(t)
	path := "/api/v1/runs/" + id + "/executions?"
	for query, field := range map[string]string{"kind=NONE": "kind", "cursor=x": "cursor", "sort=rows": "sort",
		"limit=0": "limit", "limit=501": "limit", "over_ms=-1": "over_ms", "over_ms=5&upto_ms=2": "upto_ms",
		"from=2026-11-01T12:00:01Z&until=2026-11-01T12:00:00Z": "until", "from=yesterday": "from", "outcome=lost": "outcome",
		"worker=" + strings.Repeat("w,", 101): "worker", "statements=x": "statements"} {
		a := b.do("GET", path+query, nil)
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), field) {
			t.Errorf("%s: %d %s", query, a.StatusCode, a.body)
		}
	}
	b.do("GET", "/api/v1/runs/nobody/executions", nil).problem(t, 404, engine.CodeNotFound)
	b.do("GET", "/api/v1/runs/nobody/failures", nil).problem(t, 404, engine.CodeNotFound)
	_, viewer := b.join("vera", store.RoleViewer)
	if a := b.do("GET", path, nil, viewer...); a.StatusCode != http.StatusOK {
		t.Errorf("a viewer: %d", a.StatusCode)
	}
}

func TestFailuresAreToldByStatement(t *testing.T) {
	t.Parallel()
	b, id := withRecord(t)
	path := "/api/v1/runs/" + id + "/failures"
	f := read[executions.Failures](t, b.do("GET", path, nil))
	if len(f.Failures) != 1 {
		t.Fatalf("%+v", f)
	}
	one := f.Failures[0]
	if one.Count != 100 || one.StatementID != "lookup" ||
		one.Examples[0].Message != "Key (id)=(•••) already exists, <b>" ||
		one.FirstAt.Format(time.RFC3339) != "2026-11-01T12:00:00Z" ||
		one.LastAt.Sub(one.FirstAt.Time) != 2999*time.Millisecond {
		t.Errorf("%+v", one)
	}
}

// TestALostRecordIsNotComplete: neither one that is lost as a whole, nor one of which parts are.
func TestALostRecordIsNotComplete(t *testing.T) {
	t.Parallel()
	b, id := withRecord(t)
	b.runs.move(id, engine.PhaseMeasurement, engine.StatusRunning, engine.StatusStopping)
	b.runs.move(id, engine.PhaseNone, engine.StatusCompleted)
	for name, c := range map[string]struct {
		figures engine.Figures
		want    bool
	}{
		"all": {engine.Figures{Accounting: engine.Accounting{Started: 300, Recorded: 300}}, true},
		"with statements": {engine.Figures{Accounting: engine.Accounting{Started: 100, Recorded: 100,
			Statements: 200}}, true},
		"a lost record": {engine.Figures{RecordPartial: true, Accounting: engine.Accounting{Started: 300,
			Recorded: 300}}, false},
		"lost before it came": {engine.Figures{Accounting: engine.Accounting{Started: 400, Recorded: 300}}, false},
		"a part that is gone": {engine.Figures{Accounting: engine.Accounting{Started: 400, Recorded: 400}}, false},
	} {
		b.runs.lmu.Lock()
		b.runs.figures = &c.figures
		b.runs.lmu.Unlock()
		path := "/api/v1/runs/" + id
		page := read[executions.ExecutionPage](t, b.do("GET", path+"/executions?limit=1", nil))
		failures := read[executions.Failures](t, b.do("GET", path+"/failures", nil))
		if page.Record.Complete != c.want || failures.Record.Complete != c.want {
			t.Errorf("%s: %+v and %+v", name, page.Record, failures.Record)
		}
	}
}
