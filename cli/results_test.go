package cli

import (
	"bytes"
	"encoding/csv"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/objects/objectstest"
	"github.com/loadstone-db/loadstone/storage/objects/s3store"
	"github.com/loadstone-db/loadstone/storage/objects/s3test"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
	"github.com/loadstone-db/loadstone/storage/results"
)

// TestARunKeepsItsRecordInS3: a server whose results are in S3 makes a run and is killed while it
// stores the record; the next one goes on. Figures, downloads and seconds are those of the
// same record in a folder, and nothing of a deleted run is left.
func TestARunKeepsItsRecordInS3(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Run("stand-in", func(t *testing.T) { checkKeptInS3(t, s3test.NewStandIn(t, "bench").Server) })
	t.Run("real", func(t *testing.T) { checkKeptInS3(t, s3test.Real(t, "bench")) })
}

func checkKeptInS3(t *testing.T, server s3test.Server) {
	proxy := s3test.NewProxy(t, server)
	proxy.Environment(t)
	dir, err := os.MkdirTemp("", "loadstone-s3-") // as root, Postgres cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	load := pgtest.Start(t).NewDatabase(t)
	var all strings.Builder
	serve := func() (*clitest.Process, clitest.Caller) {
		p := clitest.Launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir", dir,
			"--results", proxy.Address("runs/of-a-team"))
		session, _, _ := operatorOf(t, dir, p).SignIn()
		return p, session
	}
	first, session := serve()
	// The first write of a part gets no answer.
	var once sync.Once
	requested := make(chan struct{})
	proxy.Set(s3test.After(0, func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, ".parquet")
	}, func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		once.Do(func() { close(requested) })
		return s3test.HangRequest(w, r, forward)
	}))
	begin := func(session clitest.Caller) (run engine.Run) {
		text := "name: s3\ntarget:\n  connection: {driver: postgres, dsn: " + load + "}\n  table_name: orders\n  " +
			"prepare: {rows: 1000, if_exists: use}\n" +
			"workload: {plugin: mix, load_mode: QPS, target_qps: 300, concurrent_connections: 4, duration_seconds: 4, " +
			"warmup_seconds: 1}\nscaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 2}\n"
		session.Do("POST", "/api/runs", map[string]any{"source": text, "start": true}, &run)
		return run
	}
	killed := begin(session)
	select {
	case <-requested:
	case <-time.After(2 * time.Minute):
		t.Fatalf("no part was sent: %s", first.Out.String())
	}
	killedAt := time.Now()
	if err := first.Cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-first.Done
	all.WriteString(first.Out.String())
	if err := os.Remove(filepath.Join(dir, "operator.json")); err != nil {
		t.Fatal(err)
	}
	proxy.Set(nil)
	next, session := serve()
	// It ended, and its record is whole: only the server was not there at its end, unless that had been stored.
	d := session.AwaitEnd(killed.RunID, next)
	ended := d.Status == engine.StatusFailed ||
		d.Status == engine.StatusCompleted && !d.EndTime.IsZero() && d.EndTime.Before(killedAt)
	if a := d.Summary.Accounting; !ended || !a.Balanced || a.Recorded < 1000 ||
		a.Recorded != a.Started || d.Summary.Operations != a.Recorded-a.Warmup {
		t.Fatalf("%s at %v, killed at %v, %d operations, %+v", d.Status, d.EndTime, killedAt, d.Summary.Operations, a)
	}
	run := begin(session)
	d = session.AwaitEnd(run.RunID, next)
	if d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced {
		t.Fatalf("%s, %+v, %+v", d.Status, d.Summary.ValidityDetail, d.Summary.Accounting)
	}

	address, err := s3store.ParseAddress(proxy.Address("runs/of-a-team"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s3store.Open(t.Context(), address, s3store.Options{Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	names, err := kept.Names(t.Context(), run.RunID)
	if err != nil || len(names) < 2 {
		t.Fatalf("parts %v: %v", names, err)
	}
	checkSameInFolder(t, session, run.RunID, kept, names, d)
	clitest.Until(t, clitest.StartTimeout, func() bool { // what the node was told that it is kept goes from its disk
		left, _ := filepath.Glob(filepath.Join(dir, "spool", run.RunID, "*", "*.parquet*"))
		return len(left) == 0
	}, next.Out.String)
	if left, err := os.ReadDir(filepath.Join(dir, "results")); err == nil {
		t.Errorf("there is a folder of results: %v", left)
	}

	for _, id := range []string{killed.RunID, run.RunID} {
		if names, err := kept.Names(t.Context(), id); err != nil || len(names) < 2 {
			t.Errorf("parts %v: %v", names, err)
		}
		session.Do("DELETE", "/api/runs/"+id, nil, nil)
		if names, err := kept.Names(t.Context(), id); err != nil || len(names) != 0 {
			t.Errorf("parts of a deleted run: %v, %v", names, err)
		}
	}
	_ = next.Cmd.Process.Signal(syscall.SIGTERM)
	<-next.Done
	all.WriteString(next.Out.String())
	if !strings.Contains(all.String(), "s3://bench/runs/of-a-team") || strings.Contains(all.String(), server.Secret) {
		t.Errorf("the log does not say where results are, or shows the secret: %s", all.String())
	}
}

// checkSameInFolder holds what the server tells of the run to the same record in a folder.
func checkSameInFolder(t *testing.T, session clitest.Caller, runID string, kept *s3store.Store, names []string,
	d engine.RunDetail) {
	folder, err := results.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, record.ParamsPrefix) {
			continue // parameters are told by a route of their own
		}
		content := objectstest.Read(t, kept, runID, name)
		if code, sent := session.Raw("/api/runs/" + runID + "/executions?part=" + name); code != http.StatusOK ||
			!bytes.Equal(sent, content) {
			t.Errorf("the download of %s: %d, %d bytes of %d", name, code, len(sent), len(content))
		}
		if strings.HasPrefix(name, record.KindServer+"-") {
			continue // what was seen of the server is no execution
		}
		a, path := objectstest.File(t, runID, name, content)
		if _, err := record.OpenPart(path); err != nil {
			t.Fatal(err)
		}
		if err := folder.Put(t.Context(), a, record.LocalFile(path)); err != nil {
			t.Fatal(err)
		}
	}
	w := engine.Window{From: d.Summary.MeasuredFrom.Time, To: d.Summary.MeasuredTo.Time}
	want, err := folder.FiguresIn(t.Context(), runID, "", w)
	if err != nil {
		t.Fatal(err)
	}
	got, err := results.New(kept).FiguresIn(t.Context(), runID, "", w)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("figures from S3 differ from those of a folder: %v\n%+v\n%+v", err, got, want)
	}
	// The window that the API tells is rounded to milliseconds.
	if s := d.Summary; s.Operations != want.Operations || math.Abs(*s.QPS / *want.QPS - 1) > 0.001 ||
		!reflect.DeepEqual(s.LatencyMs, want.LatencyMs) {
		t.Errorf("the run tells of %d operations, %v/s, %v; in a folder there are %d, %v/s, %v", s.Operations, *s.QPS,
			s.LatencyMs, want.Operations, *want.QPS, want.LatencyMs)
	}
	var answer struct{ Seconds []engine.MeasuredSecond }
	seconds, err := folder.SecondsIn(t.Context(), runID, w)
	if err != nil {
		t.Fatal(err)
	}
	session.Do("GET", "/api/runs/"+runID+"/seconds", nil, &answer)
	message := answer.Seconds
	if len(message) == 0 || len(message) != len(seconds) {
		t.Fatalf("%d seconds, %d in a folder", len(message), len(seconds))
	}
	for i := range message {
		if message[i].Operations != seconds[i].Operations {
			t.Errorf("second %d: %d operations, %d in a folder", i, message[i].Operations, seconds[i].Operations)
		}
	}
	var text bytes.Buffer
	if err := folder.WriteCSV(t.Context(), runID, &text); err != nil {
		t.Fatal(err)
	}
	code, sent := session.Raw("/api/runs/" + runID + "/executions?format=csv")
	if lines, err := csv.NewReader(bytes.NewReader(sent)).ReadAll(); code != http.StatusOK || err != nil ||
		int64(len(lines))-1 != want.Accounting.Recorded || !bytes.Equal(sent, text.Bytes()) {
		t.Errorf("as CSV: %d, %d lines, %v", code, len(lines), err)
	}
}

// TestServeRefusesResultsThatItCannotKeep, in words, before it serves.
func TestServeRefusesResultsThatItCannotKeep(t *testing.T) {
	server := s3test.NewStandIn(t, "bench").Server
	server.Environment(t)
	control := postgrestest.NewControl(t)
	dir := t.TempDir() // with the key of the control store
	for name, c := range map[string]struct{ results, says string }{
		"another bucket": {strings.Replace(server.Address("x"), "bench", "nowhere", 1), "the bucket does not exist"},
		"keys in it":     {"s3://AKIA:" + server.Secret + "@bench/x", "belong into the environment"},
		"another scheme": {"gs://bench/x", "cannot be kept in gs://"},
		"a file":         {os.Args[0], "cannot be made"},
	} {
		t.Run(name, func(t *testing.T) {
			p := clitest.Launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir", dir,
				"--database-url", control, "--results", c.results)
			err := p.Wait(t, clitest.StartTimeout)
			out := strings.Join(strings.Fields(p.Out.String()), " ")
			if err == nil || !strings.Contains(out, c.says) || strings.Contains(out, server.Secret) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
