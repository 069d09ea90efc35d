package bundled_test

import (
	"context"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
)

// asking is a scenario that was not given leave to write.
func (s *snow) asking(adapter, workload, table, params string, prep *engine.Prepare) engine.Scenario {
	sc := s.scenario(adapter, workload, table, params, prep)
	sc.Target.AllowWrites = false
	return sc
}

func (s *snow) ready(sc engine.Scenario) (*prepare.Prepared, error) {
	return prepare.Plan(context.Background(), s.deps(), sc, nil)
}

func (s *snow) look(sc engine.Scenario) *prepare.Preflight {
	s.Helper()
	f, err := prepare.Inspect(context.Background(), s.deps(), sc, true)
	if err != nil {
		s.Fatal(err)
	}
	return f
}

const writing = `{"weights":{"POINT_LOOKUP":1,"INSERT":1,"UPDATE":1}}`

// TestSnowflakeWritesToTablesOfOthersAreAskedFor: Loadstone's own are known by a mark
// that neither a clone of the comment nor a table made again has.
func TestSnowflakeWritesToTablesOfOthersAreAskedFor(t *testing.T) {
	t.Parallel()
	s := newSnow(t)
	s.exec("CREATE TABLE THEIRS (ID INT PRIMARY KEY, NOTE VARCHAR)",
		"INSERT INTO THEIRS SELECT SEQ4(), 'x' FROM TABLE(GENERATOR(ROWCOUNT => 12345))")
	for _, c := range []struct{ name, workload, params, line string }{
		{"mix", "mix", writing, "INSERT and UPDATE in LOADSTONE.PUBLIC.THEIRS, 12 k rows"},
		{"own SQL", "sql", `{"statements":[{"id":"s","sql":"DELETE FROM {table} WHERE ID = 1"}]}`,
			"DELETE in LOADSTONE.PUBLIC.THEIRS, 12 k rows"},
		{"a procedure", "sql", `{"statements":[{"id":"s","sql":"CALL work()"}]}`, "CALL the statement s, which may write"},
	} {
		sc := s.asking("snowflake_standard", c.workload, "THEIRS", c.params, nil)
		if c.name == "a procedure" {
			sc.Target.TableName = ""
		}
		f := s.look(sc)
		got := found(f, "writes", "failed")
		if f.OK || got == nil || !strings.HasPrefix(got.Message, c.line) || !strings.Contains(got.Fix, "--allow-writes") {
			t.Errorf("%s: %+v", c.name, f.Checks)
		}
		if _, err := s.ready(sc); !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), c.line) {
			t.Errorf("%s: the run: %v", c.name, err)
		}
		if sc.Target.AllowWrites = true; c.name != "a procedure" {
			if p, err := s.ready(sc); err != nil || !strings.Contains(strings.Join(p.Notes, "\n"), c.line) {
				t.Errorf("%s: with leave: %v", c.name, err)
			}
		}
	}
	if p := s.prepare(s.asking("snowflake_standard", "mix", "THEIRS", "{}", nil)); strings.Contains(kinds(p.Plan),
		"INSERT") {
		t.Errorf("mix without weights writes to a table of others: %s", kinds(p.Plan))
	}

	for _, adapter := range []string{"snowflake_standard", "snowflake_hybrid"} {
		name := "OURS_" + strings.ToUpper(adapter[len("snowflake_"):])
		prep := &engine.Prepare{Rows: 100, IfExists: engine.IfExistsUse}
		s.prepare(s.asking(adapter, "mix", name, writing, prep))
		second := s.look(s.asking(adapter, "mix", name, writing, prep))
		if !second.OK || found(second, "writes", "ok") == nil {
			t.Fatalf("%s: a table of Loadstone's own: %+v", adapter, second.Checks)
		}
		tried := found(second, "trial", "ok")
		if tried == nil || !strings.Contains(tried.Message, "takes insert and update") || second.Untried {
			t.Errorf("%s: what the run would write was not tried: %+v", adapter, second.Checks)
		}
		if n := s.one("SELECT COUNT(*) FROM " + name); n != "100" {
			t.Errorf("%s: %s rows after the trial", adapter, n)
		}
	}
	mark := s.one("SELECT COMMENT FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = 'OURS_STANDARD'")
	s.exec("COMMENT ON TABLE THEIRS IS '" + mark + "'")
	if f := s.look(s.asking("snowflake_standard", "mix", "THEIRS", writing, nil)); f.OK {
		t.Errorf("a copied comment is trusted: %+v", f.Checks)
	}
	s.exec("CREATE OR REPLACE TABLE OURS_STANDARD (ID INT PRIMARY KEY, NOTE VARCHAR)",
		"INSERT INTO OURS_STANDARD VALUES (1, 'x')", "COMMENT ON TABLE OURS_STANDARD IS '"+mark+"'")
	if f := s.look(s.asking("snowflake_standard", "mix", "OURS_STANDARD", writing, nil)); f.OK {
		t.Errorf("a table made again with the comment of the one before is trusted: %+v", f.Checks)
	}
}

// TestSnowflakeRecreateIsAtomic: the new table takes the old one's place when it is
// whole; what goes is named, and a table of others is not dropped without leave.
func TestSnowflakeRecreateIsAtomic(t *testing.T) {
	t.Parallel()
	s := newSnow(t)
	recreate := &engine.Prepare{Rows: 50, IfExists: engine.IfExistsRecreate}
	s.exec("CREATE TABLE THEIRS (ID INT PRIMARY KEY, NOTE VARCHAR) CLUSTER BY (NOTE)",
		"INSERT INTO THEIRS VALUES (1, 'x'), (2, 'y')", "CREATE ROLE READERS", "GRANT SELECT ON TABLE THEIRS TO ROLE READERS")
	sc := s.asking("snowflake_standard", "mix", "THEIRS", writing, recreate)
	if _, err := s.ready(sc); !engine.HasCode(err, engine.CodeInvalid) ||
		!strings.Contains(err.Error(), "not made by Loadstone") {
		t.Errorf("without leave: %v", err)
	}
	sc.Target.AllowWrites = true
	f := s.look(sc)
	if len(f.Creates) != 1 || !strings.Contains(strings.Join(f.Creates[0].DDL, "\n"), "SWAP WITH") {
		t.Errorf("preflight: %+v", f.Creates)
	}
	for _, gone := range []string{"2 rows", "clustering", "grants to READERS"} {
		if got := found(f, "table", "warning"); got == nil || !strings.Contains(got.Message, gone) {
			t.Errorf("%q is not named: %+v", gone, f.Checks)
		}
	}
	s.prepare(sc)
	if n := s.one("SELECT COUNT(*) FROM THEIRS"); n != "50" {
		t.Errorf("the table has %s rows", n)
	}
	// Then it is Loadstone's own, and needs no leave, however often.
	for _, adapter := range []string{"snowflake_standard", "snowflake_hybrid", "snowflake_interactive"} {
		name, params := "OURS_"+strings.ToUpper(adapter[len("snowflake_"):]), writing
		if adapter == "snowflake_interactive" {
			params = `{"weights":{"POINT_LOOKUP":1}}`
		}
		s.prepare(s.asking(adapter, "mix", name, params, &engine.Prepare{Rows: 20, IfExists: engine.IfExistsUse}))
		for range 2 {
			if _, err := s.ready(s.asking(adapter, "mix", name, params, recreate)); err != nil {
				t.Fatalf("%s: %v", adapter, err)
			}
			if n := s.one("SELECT COUNT(*) FROM " + name); n != "50" {
				t.Errorf("%s has %s rows", name, n)
			}
		}
	}
	if n := s.one("SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME LIKE '%LOADSTONE%'"); n != "0" {
		t.Errorf("%s tables were left behind", n)
	}
	// A run that is stopped half-way leaves the old table as it was.
	ctx, cancel := context.WithCancel(context.Background())
	_, err := prepare.Plan(ctx, s.deps(),
		s.asking("snowflake_standard", "mix", "OURS_STANDARD", writing,
			&engine.Prepare{Rows: 200_000, IfExists: engine.IfExistsRecreate, Load: engine.LoadCopy}),
		func(p engine.PrepareProgress) {
			if p.Step == "load" {
				cancel()
			}
		})
	if n := s.one("SELECT COUNT(*) FROM OURS_STANDARD"); err == nil || n != "50" {
		t.Errorf("stopped while loading: %v, %s rows", err, n)
	}
	s.exec("CREATE HYBRID TABLE LINES (ID INT PRIMARY KEY, O INT FOREIGN KEY REFERENCES OURS_HYBRID (ID))")
	if _, err := s.ready(s.asking("snowflake_hybrid", "mix", "OURS_HYBRID", writing, recreate)); !engine.HasCode(err,
		engine.CodeInvalid) || !strings.Contains(err.Error(), "LINES") {
		t.Errorf("a table that another refers to: %v", err)
	}
}
