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
)

// TestEmulatorRuns drives whole runs through the program against somebody else's
// emulator of Snowflake: `make test-snowflake-emulator` installs and starts it.
func TestEmulatorRuns(t *testing.T) {
	dsn := os.Getenv("LOADSTONE_SNOWFLAKE_EMULATOR")
	if dsn == "" {
		t.Skip("no emulator: run `make test-snowflake-emulator`")
	}
	p := clitest.NewProgram(t)
	mix := func(name, table string, rows int, rest string) string {
		return p.Write(name, fmt.Sprintf("name: %s\ntarget:\n  connection: {driver: snowflake, dsn: %q}\n  adapter: "+
			"snowflake_standard\n  table_name: %s\n  prepare: {rows: %d, if_exists: use}\n"+
			"workload: {plugin: mix, params: {weights: {POINT_LOOKUP: 4, RANGE_SCAN: 1, INSERT: 2, UPDATE: 2, DELETE: 1}}, "+
			"concurrent_connections: 2, warmup_seconds: 1, duration_seconds: 4}\n%s",
			strings.TrimSuffix(name, ".yaml"), dsn, table, rows, rest))
	}
	small := mix("small.yaml", "small", 300, "")
	// emulated judges one run: its figures are there, and every place says whose they are.
	emulated := func(t *testing.T, code int, text string, s *engine.Summary, template string) {
		t.Helper()
		if code != 0 || s == nil {
			t.Fatalf("exit %d: %s", code, text)
		}
		if s.Status != engine.StatusCompleted || !s.Simulated || !s.Emulated ||
			!strings.HasSuffix(s.Verdict, " (emulated)") || s.Operations == 0 || s.Errors.Count != 0 {
			t.Errorf("%s, %q, simulated %v, emulated %v, %d operations, %d errors", s.Status, s.Verdict, s.Simulated, s.Emulated,
				s.Operations, s.Errors.Count)
		}
		if !strings.Contains(text, "emulated: another engine answered") || !strings.Contains(text, "(emulated)") {
			t.Errorf("the terminal does not say it: %s", text)
		}
		junit, err := os.ReadFile(p.Path(filepath.Base(template) + ".json.xml"))
		if err != nil || !strings.Contains(string(junit), `name="stand_in" value="emulated"`) ||
			!strings.Contains(string(junit), `name="run completes (emulated)"`) {
			t.Errorf("JUnit: %v %s", err, junit)
		}
	}

	code, text, first := p.Run(small)
	emulated(t, code, text, first, small)
	for _, kind := range []engine.Kind{engine.KindPointLookup, engine.KindRangeScan, engine.KindInsert,
		engine.KindUpdate} {
		if f := first.ByKind[kind]; f == nil || f.Count == 0 {
			t.Errorf("no %s: %+v", kind, first.ByKind)
		}
	}
	t.Run("a larger table", func(t *testing.T) {
		large := mix("large.yaml", "large", 1200, "thresholds: [error_rate == 0]\n")
		code, text, s := p.Run(large)
		emulated(t, code, text, s, large)
	})
	t.Run("a threshold that is missed", func(t *testing.T) {
		missed := mix("missed.yaml", "missed", 100, "thresholds: [p95_ms < 0.0001]\n")
		if code, text, s := p.Run(missed); code != 3 || s == nil || !s.Emulated {
			t.Errorf("exit %d: %s", code, text)
		}
	})
	t.Run("writes without leave", func(t *testing.T) {
		// The emulator cannot tell a table from its successor, so no mark holds there.
		if code, text, _ := p.Run(small); code != 1 || !strings.Contains(text, "Loadstone did not make") {
			t.Errorf("exit %d: %s", code, text)
		}
	})
	t.Run("recreate", func(t *testing.T) {
		code, text, s := p.Run(small, "--allow-writes", "--set", "target.prepare={rows: 200, if_exists: recreate}")
		emulated(t, code, text, s, small)
	})
	t.Run("own SQL", func(t *testing.T) {
		template := p.Write("sql.yaml", fmt.Sprintf(`name: own sql
target:
  connection: {driver: snowflake, dsn: %q}
  adapter: snowflake_standard
  table_name: small
workload:
  plugin: sql
  params:
    statements:
      - {id: one, weight: 3, sql: "SELECT STATUS, AMOUNT FROM {table} WHERE ID = :id", binds: [{name: id, generator: key}]}
      - {id: total, weight: 1, sql: "SELECT COUNT(*), MAX(AMOUNT) FROM {table} WHERE ID BETWEEN :a AND :a + 50", binds: [{name: a, generator: uniform, min: 1, max: 200}]}
      - {id: note, weight: 1, sql: "UPDATE {table} SET NOTE = :note WHERE ID = :id", binds: [{name: note, generator: text, pattern: "n-####"}, {name: id, generator: key}]}
  concurrent_connections: 2
  warmup_seconds: 0
  duration_seconds: 4
`, dsn))
		code, text, s := p.Run(template, "--allow-writes")
		emulated(t, code, text, s, template)
		for _, f := range s.ByStatement {
			if f.Count == 0 {
				t.Errorf("the statement %s was not executed", f.StatementID)
			}
		}
	})
	t.Run("compare", func(t *testing.T) {
		a, b := p.Path("small.yaml.json"), p.Path("large.yaml.json")
		code, text := p.Command("compare", a, b)
		if code > 1 && code != 3 || !strings.Contains(text, "emulated") {
			t.Errorf("exit %d: %s", code, text)
		}
	})
	t.Run("page", func(t *testing.T) {
		s := p.Serve()
		defer s.Stop()
		for _, path := range []string{"/api/runs/" + first.RunID, "/api/runs?limit=50"} {
			if body := s.MustGet(path); !strings.Contains(body, `"emulated":true`) {
				t.Errorf("%s does not say it: %s", path, body)
			}
		}
		var d engine.RunDetail
		if err := json.Unmarshal([]byte(s.MustGet("/api/runs/"+first.RunID)), &d); err != nil ||
			d.Enrichment.Status != engine.EnrichmentSkipped || !strings.Contains(d.Enrichment.Reason, "emulator") {
			t.Errorf("enrichment: %v, %+v", err, d.Enrichment)
		}
		log := s.MustGet("/api/runs/" + first.RunID + "/logs?limit=1000")
		for _, missed := range []string{"has no warehouses", "what is granted to whom", "no history of single queries"} {
			if !strings.Contains(log, "Not checked: the server is an emulator") || !strings.Contains(log, missed) {
				t.Errorf("the log does not name what was not checked (%s): %s", missed, log)
			}
		}
	})
}
