package cli

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestSampledRowsAreShownToNobody: a run takes its keys from rows of the target, and none of their values is in what the
// server shows of it, in its log, or in a backup without the key.
func TestSampledRowsAreShownToNobody(t *testing.T) {
	t.Parallel()
	target := pgtest.Start(t).NewDatabase(t)
	conn, err := pgx.Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), `CREATE TABLE people (email text PRIMARY KEY, n int NOT NULL DEFAULT 0);
		INSERT INTO people SELECT 'person' || i || '@canary.example', i FROM generate_series(1, 500) i; ANALYZE people`); err != nil {
		t.Fatal(err)
	}
	p := clitest.NewProgram(t)
	s := p.Serve()
	t.Cleanup(s.Stop)
	source := fmt.Sprintf("name: sampled\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  table_name: people\n  "+
		"allow_writes: true\nworkload: {plugin: mix, params: {weights: {POINT_LOOKUP: 100}}, load_mode: QPS, target_qps: 50, "+
		"concurrent_connections: 2, duration_seconds: 2, warmup_seconds: 0}\n", target)
	in, err := json.Marshal(map[string]any{"source": source, "allow_writes": true})
	if err != nil {
		t.Fatal(err)
	}
	if status, body := s.Send(
		"POST",
		"/api/preflight",
		string(in),
	); status != http.StatusOK ||
		strings.Contains(body, "canary") {
		t.Errorf("the preflight: %d %s", status, body)
	}
	run := s.StartRun(source)
	seen := func(path string) {
		t.Helper()
		if status, body := s.Send("GET", strings.ReplaceAll(path, "{id}", run.RunID), ""); status != http.StatusOK ||
			strings.Contains(body, "canary") {
			t.Errorf("%s: %d, and a value of a row at %d", path, status, strings.Index(body, "canary"))
		}
	}
	seen("/api/runs/{id}")
	d := s.AwaitEnd(run.RunID)
	if d.Status != engine.StatusCompleted || d.Plan == nil || d.Summary == nil || d.Summary.Operations < 50 {
		t.Fatalf("the run is %s: %v", d.Status, d.CancellationReason)
	}
	for _, path := range []string{"/api/runs/{id}", "/api/runs/{id}/summary", "/api/runs/{id}/report", "/api/runs/{id}/events",
		"/api/runs/{id}/logs", "/api/runs/{id}/executions?format=csv", "/api/v1/runs/{id}/binds",
		"/api/v1/runs/{id}/failures", "/api/audit", "/api/runs", "/api/tests/{id}"} {
		seen(path)
	}
	s.Stop()
	if strings.Contains(s.Out.String(), "canary") {
		t.Error("the server's log has a value of a row")
	}
	if code, text := p.Command(
		"backup",
		"--data-dir",
		p.Path("data"),
		"--executions",
		"--out",
		p.Path("b.zip"),
	); code != 0 {
		t.Fatal(text)
	}
	z, err := zip.OpenReader(p.Path("b.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = z.Close() }()
	sealed := false
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		_ = r.Close()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "canary") {
			t.Errorf("%s of the backup has a value of a row", f.Name)
		}
		sealed = sealed || strings.Contains(string(text), "pools_sealed")
	}
	if !sealed {
		t.Error("the run has taken no samples: the test shows nothing")
	}
}
