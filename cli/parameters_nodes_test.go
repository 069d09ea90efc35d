package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/params"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// floodWorkload is a workload of which all but one operation in a hundred fail.
const floodWorkload = `name: flood
target: {connection: {driver: postgres, dsn: %q}, adapter: postgres}
workload:
  plugin: sql
  params:
    statements:
      - {id: fails, weight: 99, sql: "SELECT 1 / (length(:word::text) - 9)", binds: [{name: word, values: ["Ann Smith"]}]}
      - {id: works, weight: 1, sql: "SELECT length(:word::text)", binds: [{name: word, values: ["Bob"]}]}
  concurrent_connections: %d
  warmup_seconds: 1
  duration_seconds: 3
  binds: plain
scaling: {mode: FIXED, worker_count: %d, per_worker_capacity: 2}
`

// checkParameterLimit holds that of each error of a statement no more is kept than one may keep, and returns who kept
// something.
func checkParameterLimit(t *testing.T, kept []params.KeptExecution) (workers map[string]int) {
	t.Helper()
	workers = map[string]int{}
	counts := map[string]int{}
	for _, e := range kept {
		workers[e.WorkerID]++
		counts[e.Why+" "+e.StatementID+" "+e.ErrorCode+" "+string(e.Phase)]++
	}
	for what, n := range counts {
		limit := params.MaxSlowest
		if strings.HasPrefix(what, params.Failed) {
			limit = params.MaxPerError
		}
		if n > limit {
			t.Errorf("%d are kept of %s", n, what)
		}
	}
	return workers
}

// TestParametersOfAFloodOnSeveralNodes: six run workers, of the server's own node and of one in another process, meet
// nothing but errors. Each keeps the first of them, all of it reaches the server, and of all together the first are
// told; a backup with executions has them, and a server that it is restored to tells the same.
func TestParametersOfAFloodOnSeveralNodes(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	db := pgtest.Start(t).NewDatabase(t)
	p := clitest.NewProgram(t)
	n := clitest.StartNode(t, t.TempDir(), "")
	s := p.Serve("--nodes", n.Address, "--local-capacity", "4")
	id := s.StartRun(fmt.Sprintf(floodWorkload, db, 12, 6)).RunID
	nodes := map[string]bool{}
	clitest.WaitFor(t, clitest.StartTimeout, "the run's workers", func() bool {
		var now engine.RunDetail
		s.GetJSON("/api/runs/"+id, &now)
		if now.Live != nil {
			for _, w := range now.Live.Workers {
				nodes[w.NodeID] = true
			}
		}
		return len(nodes) > 0 || now.Status.Terminal()
	})
	if len(nodes) != 2 {
		t.Errorf("run workers of the nodes %v", nodes)
	}
	d := s.AwaitEnd(id)
	if d.Status != engine.StatusCompleted || d.Summary.Errors.Count < 1000 || len(d.Workers) != 6 {
		t.Fatalf("%s with %d workers: %+v", d.Status, len(d.Workers), d.Summary)
	}
	files := map[string]bool{}
	for _, a := range d.Artifacts {
		if strings.HasPrefix(a.Name, "binds-") {
			files[a.WorkerID] = true
		}
	}
	if len(files) != 6 {
		t.Errorf("files of %v", files)
	}
	kept := s.Parameters("POST", d.RunID, "").Executions
	checkParameterLimit(t, kept)
	if failed := s.Parameters(
		"GET",
		d.RunID,
		"why=failed&statement=fails",
	); failed.Total != params.MaxPerError+params.MaxWarmupPerError {
		t.Errorf("%d are told of one error", failed.Total)
	}
	for _, e := range kept {
		want := "Ann Smith"
		if e.StatementID == "works" {
			want = "Bob"
		}
		if textOf(e, "word") != want {
			t.Errorf("%s of %s: %q", e.StatementID, e.WorkerID, textOf(e, "word"))
		}
	}
	stored := filepath.Join(p.Path("data"), "results", d.RunID)
	if _, n := bindsFiles(t, stored); n != 6 {
		t.Errorf("%d files are stored in %s", n, stored)
	}
	clitest.WaitFor(t, clitest.StartTimeout, "the node to let go of what was fetched", func() bool {
		_, left := bindsFiles(t, n.Dir)
		return left == 0
	})

	file := p.Path("all.backup")
	if code, message := p.Command(
		"backup",
		"--out",
		file,
		"--executions",
		"--with-key",
		"--data-dir",
		p.Path("data"),
	); code != 0 {
		t.Fatalf("exit %d: %s", code, message)
	}
	s.Stop()
	other := clitest.NewProgram(t)
	if code, output := other.Command("restore", file, "--data-dir", other.Path("data")); code != 0 {
		t.Fatalf("exit %d: %s", code, output)
	}
	r := other.Serve()
	defer r.Stop()
	second := r.Parameters("POST", d.RunID, "").Executions
	if len(second) != len(kept) {
		t.Errorf("%d are told after a restore, %d before", len(second), len(kept))
	}
	for i := range min(len(second), len(kept)) {
		if a, b := second[i], kept[i]; a.WorkerID != b.WorkerID || a.Seq != b.Seq || textOf(a, "word") != textOf(b, "word") {
			t.Errorf("number %d is %+v after a restore, %+v before", i, a, b)
			break
		}
	}
}

// TestParametersOfAReplay: the line of the feed that failed is told by its values.
func TestParametersOfAReplay(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	db := pgtest.Start(t).NewDatabase(t)
	p := clitest.NewProgram(t)
	s := p.Serve()
	defer s.Stop()
	template := p.Write("replay.yaml", fmt.Sprintf(`name: replay
target: {connection: {driver: postgres, dsn: %q}, adapter: postgres}
workload:
  plugin: replay
  params:
    speed: 0
    statements:
      - {id: divides, sql: "SELECT length(:word::text) / :by::bigint", binds: [{name: word, type: text}, {name: by, type: i64}]}
  load_mode: QPS
  arrival: workload
  concurrent_connections: 2
  warmup_seconds: 0
  duration_seconds: 30
  binds: plain
`, db))
	feed := p.Write("feed.csv", "0,divides,Ann Smith,1\n1,divides,\"Bob, \"\"the\"\" Second\",0\n2,divides,Eve,3\n")
	out := p.Path("out.json")
	var token struct{ Secret string }
	if _, body := s.Send("POST", "/api/auth/tokens", `{"name":"ci","scope":"run"}`); json.Unmarshal([]byte(body),
		&token) != nil {
		t.Fatal(body)
	}
	_, message := p.Command("run", template, "--feed", feed, "--server", s.Base, "--token", token.Secret, "--out", out)
	var summary struct {
		RunID string `json:"run_id"`
	}
	if raw, err := os.ReadFile(out); err != nil || json.Unmarshal(raw, &summary) != nil {
		t.Fatalf("%v: %s", err, message)
	}
	s.AwaitEnd(summary.RunID)
	failed := s.Parameters("POST", summary.RunID, "why=failed").Executions
	if len(failed) != 1 || textOf(failed[0], "word") != `Bob, "the" Second` || textOf(failed[0], "by") != "0" ||
		failed[0].ErrorCode != "22012" {
		t.Errorf("%+v\n%s", failed, message)
	}
	if slow := s.Parameters("POST", summary.RunID, "why=slow").Executions; len(slow) != 2 {
		t.Errorf("%d of two that succeeded are among the slowest", len(slow))
	}
}

// TestParametersOfTheStandIn: a Snowflake account's errors have theirs, too, and its messages no values.
func TestParametersOfTheStandIn(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	account := p.StandIn("--listen", "127.0.0.1:0")
	defer account.Stop(t)
	s := p.Serve()
	defer s.Stop()
	d := s.AwaitEnd(s.StartRun(fmt.Sprintf(`name: account
target: {connection: {driver: snowflake, dsn: %q}, adapter: snowflake_standard}
workload:
  plugin: sql
  params:
    statements:
      - {id: divides, sql: "SELECT LENGTH(:word) / :by", binds: [{name: word, values: ["Ann Smith-4711"]}, {name: by, values: [0, 7]}]}
      - {id: casts, sql: "SELECT TO_NUMBER(:word)", binds: [{name: word, values: ["Ann Smith-4711"]}]}
  concurrent_connections: 2
  warmup_seconds: 0
  duration_seconds: 3
  binds: plain
`, account.Dsn)).RunID)
	if d.Status != engine.StatusCompleted {
		reason := ""
		if d.CancellationReason != nil {
			reason = *d.CancellationReason
		}
		t.Fatalf("%s %s", d.Status, reason)
	}
	kept := s.Parameters("POST", d.RunID, "").Executions
	checkParameterLimit(t, kept)
	message := map[string]string{}
	for _, e := range kept {
		if textOf(e, "word") != "Ann Smith-4711" || e.Why == params.Failed && e.StatementID == "divides" &&
			textOf(e, "by") != "0" {
			t.Errorf("%+v", e)
		}
		message[e.StatementID+" "+e.ErrorCode] = e.ErrorMessage
	}
	t.Logf("errors %v", message)
	if len(message) != 3 { // two errors, and the slowest of what succeeded
		t.Errorf("errors %v", message)
	}
	for _, path := range []string{"/api/v1/runs/" + d.RunID + "/failures?mask=true",
		"/api/v1/runs/" + d.RunID + "/executions?outcome=failed", "/api/v1/runs/" + d.RunID + "/binds"} {
		if text := s.MustGet(path); strings.Contains(text, "Smith") {
			t.Errorf("%s: %.600s", path, text)
		}
	}
}
