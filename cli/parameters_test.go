package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/params"
	"github.com/loadstone-db/loadstone/engine/results/record"
	apibinds "github.com/loadstone-db/loadstone/server/api"
)

// failsAndSleeps is a workload with a statement that fails for one value and one that is slow for another, and a
// transaction of both.
const failsAndSleeps = `name: fails and sleeps
target: {connection: playground, adapter: postgres}
workload:
  plugin: sql
  params:
    statements:
      - {id: quick, weight: 60, sql: "SELECT 1 WHERE :id::bigint >= 0", binds: [{name: id, generator: uniform, min: 1, max: 1000000}]}
      - id: divides
        weight: 20
        sql: "SELECT length(:word::text) / :by::bigint"
        binds: [{name: by, values: [0, 7], weights: [1, 1]}, {name: word, values: ["<b>Ann</b> Smith-4711"]}]
      - {id: sleeps, weight: 20, sql: "SELECT pg_sleep(:wait::float8)", binds: [{name: wait, values: [0.001, 0.25], weights: [9, 1]}]}
  concurrent_connections: 4
  warmup_seconds: 0.5
  BINDS
scaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 2}
`

// textOf is a parameter of the only statement of an execution; "?" where it is masked.
func textOf(e params.KeptExecution, name string) string {
	for _, v := range e.Calls[0].Values {
		if v.Name == name && v.Text != nil {
			return *v.Text
		}
	}
	return "?"
}

// files are those with parameters that lie in a folder, whatever their names.
func bindsFiles(t *testing.T, dir string) (all []byte, n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was removed meanwhile
		}
		if err != nil || !strings.HasPrefix(d.Name(), record.ParamsPrefix) {
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		all, n = append(all, text...), n+1
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, n
}

// TestParametersOfFailedAndSlowExecutions goes through all layers on a real database: what is kept are the first
// that failed and the slowest, with the parameters that made them so; masked unless they are asked for, and each
// look at the values is noted. What a killed server had kept is found by the next.
func TestParametersOfFailedAndSlowExecutions(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	s := p.Serve()
	run := func(mode string) engine.RunDetail {
		t.Helper()
		d := s.AwaitEnd(s.StartRun(strings.Replace(failsAndSleeps, "BINDS", "duration_seconds: 3\n  "+mode, 1)).RunID)
		if d.Status != engine.StatusCompleted {
			t.Fatalf("%s %+v", d.Status, d.Run)
		}
		return d
	}
	plain := run("binds: plain")
	seen := s.Parameters("GET", plain.RunID, "")
	if seen.Mode != params.Plain || seen.Values || len(seen.Executions) == 0 {
		t.Fatalf("%+v", seen)
	}
	for _, e := range seen.Executions {
		for _, v := range e.Calls[0].Values {
			if v.Text != nil {
				t.Fatalf("%s is shown", *v.Text)
			}
		}
	}
	failed := s.Parameters("POST", plain.RunID, "why=failed&statement=divides&error_code=22012").Executions
	if len(failed) != params.MaxPerError+params.MaxWarmupPerError {
		t.Errorf("%d of one error are kept", len(failed))
	}
	for _, e := range failed {
		if textOf(e, "by") != "0" || textOf(e, "word") != "<b>Ann</b> Smith-4711" ||
			!strings.Contains(e.Calls[0].SQL, "length(") {
			t.Errorf("%+v", e)
		}
	}
	slow := s.Parameters("POST", plain.RunID, "why=slow&statement=sleeps").Executions
	if len(slow) != params.MaxSlowest || !slices.IsSortedFunc(slow, func(a, b params.KeptExecution) int {
		return -int(a.ServiceMs - b.ServiceMs)
	}) {
		t.Errorf("%d are kept of the slowest", len(slow))
	}
	for i, e := range slow {
		// On a busy machine a short sleep may take long; the slowest do not.
		if i < 3 && textOf(e, "wait") != "0.25" || e.ServiceMs < 10 {
			t.Errorf("%v ms for %s s", e.ServiceMs, textOf(e, "wait"))
		}
	}
	one := slow[0]
	var page struct {
		Executions []struct {
			AppElapsedMs float64 `json:"app_elapsed_ms"`
		} `json:"executions"`
	}
	s.GetJSON("/api/v1/runs/"+plain.RunID+"/executions?sort=latency&limit=1&statement=sleeps&phase=MEASUREMENT", &page)
	if page.Executions[0].AppElapsedMs != one.AppElapsedMs {
		t.Errorf("the slowest of the record took %v ms, of those kept %v", page.Executions[0].AppElapsedMs, one.AppElapsedMs)
	}
	if trail := s.MustGet("/api/audit?action=binds.show"); strings.Count(trail, `"binds.show"`) != 2 {
		t.Errorf("the audit log: %s", trail)
	}
	stored := p.Path("data")
	if text, n := bindsFiles(t, stored); n != 2 || !bytes.Contains(text, []byte("Smith-4711")) {
		t.Errorf("%d files are kept of two run workers", n)
	}
	if status, body := s.Send("DELETE", "/api/runs/"+plain.RunID, ""); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, body)
	}
	if _, n := bindsFiles(t, stored); n != 0 {
		t.Errorf("%d files are left of a run that was deleted", n)
	}

	masked := run("seed: 2") // nothing said of binds
	kept := s.Parameters("GET", masked.RunID, "why=failed&statement=divides").Executions
	if v := kept[0].Calls[0].Values; !slices.ContainsFunc(v, func(v params.KeptValue) bool {
		return v.Name == "word" && v.Type == "text" && v.Length == int64(len("<b>Ann</b> Smith-4711")) && v.Text == nil
	}) {
		t.Errorf("%+v", v)
	}
	if text, n := bindsFiles(t, stored); n != 2 || bytes.Contains(text, []byte("4711")) {
		t.Errorf("%d files, and the value is there: %v", n, bytes.Contains(text, []byte("4711")))
	}
	if status, body := s.Send("POST", "/api/v1/runs/"+masked.RunID+"/binds", "{}"); status != http.StatusConflict {
		t.Errorf("%d %s", status, body)
	}
	none := run("binds: none")
	if kept := s.Parameters("GET", none.RunID, ""); kept.Mode != params.None || len(kept.Executions) != 0 {
		t.Errorf("%+v", kept)
	}

	crashed := s.StartRun(strings.Replace(failsAndSleeps, "BINDS", "duration_seconds: 600\n  binds: plain", 1))
	clitest.WaitFor(t, clitest.StartTimeout, "parameters in the spool", func() bool {
		_, n := bindsFiles(t, stored)
		return n > 2
	})
	time.Sleep(100 * time.Millisecond) // both run workers
	if err := s.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait(t, time.Minute)
	s = p.Serve()
	defer s.Stop()
	var kills apibinds.KeptBinds
	clitest.WaitFor(t, clitest.StartTimeout, "what the killed server had kept", func() bool {
		kills = s.Parameters("GET", crashed.RunID, "statement=divides&error_code=22012")
		return len(kills.Executions) > 0
	})
	if d := s.AwaitEnd(crashed.RunID); d.Status != engine.StatusFailed || kills.Executions[0].WorkerID == "" {
		t.Errorf("%s: %+v", d.Status, kills.Executions[0])
	}
}
