package bundled_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/snowsim"
	"github.com/loadstone-db/loadstone/snowsim/translate"
)

func (s *snow) inspect(sc engine.Scenario) *prepare.Preflight {
	s.Helper()
	f, err := prepare.Inspect(context.Background(), s.deps(), sc, true)
	if err != nil {
		s.Fatal(err)
	}
	return f
}

// found is the first check of a name with an outcome.
func found(f *prepare.Preflight, name, outcome string) *prepare.CheckResult {
	if i := slices.IndexFunc(f.Checks, func(c prepare.CheckResult) bool {
		return c.Name == name &&
			c.Outcome == outcome
	}); i >= 0 {
		return &f.Checks[i]
	}
	return nil
}

// as is the account for a role.
func (s *snow) as(role string) *snow {
	return &snow{T: s.T, host: s.host, db: s.db, dsn: strings.Replace(s.dsn, "role=SYSADMIN", "role="+role, 1)}
}

const everyKind = `{"weights":{"POINT_LOOKUP":4,"INSERT":1,"UPDATE":1,"DELETE":1}}`

// TestRightsAreLookedAtFirst: a role without the rights that the template's weights ask for
// is told so, with the GRANT; with the GRANT executed the run goes.
func TestRightsAreLookedAtFirst(t *testing.T) {
	t.Parallel()
	s := newSnow(t)
	s.exec("CREATE TABLE orders (id NUMBER, note VARCHAR(100), PRIMARY KEY (id))",
		"INSERT INTO orders SELECT SEQ4() + 1, 'x' FROM TABLE(GENERATOR(ROWCOUNT => 100))",
		"CREATE HYBRID TABLE held (id NUMBER PRIMARY KEY, note VARCHAR(100))", "INSERT INTO held VALUES (1, 'x'), (2, 'y')")
	const wh = snowsim.DefaultWarehouse
	for i, c := range []struct {
		name, adapter, table, params string
		ifExists                     engine.IfExists
		grants                       []string // to the role
		check, outcome, field, words string   // the check that tells it; none: all is well
		fix                          string   // its beginning
		alone                        bool     // the fix is all that it takes
	}{
		{name: "reading is enough for lookups", adapter: "snowflake_standard", table: "orders",
			params: `{"weights":{"POINT_LOOKUP":1}}`, grants: []string{"GRANT SELECT ON TABLE orders"}},
		{name: "writing is not", adapter: "snowflake_standard", table: "orders", params: everyKind,
			grants: []string{"GRANT SELECT, INSERT ON TABLE orders"},
			check:  "privileges", outcome: "failed", field: "target.table_name",
			words: "is not granted UPDATE and DELETE on the table",
			fix:   `GRANT UPDATE, DELETE ON TABLE "LOADSTONE"."PUBLIC"."ORDERS" TO ROLE`, alone: true},
		{name: "a hybrid table", adapter: "snowflake_hybrid", table: "held", params: everyKind,
			grants: []string{"GRANT SELECT, INSERT, UPDATE ON TABLE held"},
			check:  "privileges", outcome: "failed", field: "target.table_name", words: "is not granted DELETE",
			fix: `GRANT DELETE ON TABLE "LOADSTONE"."PUBLIC"."HELD" TO ROLE`, alone: true},
		{name: "no right but one that does not read", adapter: "snowflake_standard", table: "orders",
			params: `{"weights":{"POINT_LOOKUP":1}}`, grants: []string{"GRANT INSERT ON TABLE orders"},
			check: "privileges", outcome: "failed", field: "target.table_name", words: "SELECT", fix: "GRANT SELECT ON TABLE",
			alone: true},
		{name: "no right at all", adapter: "snowflake_standard", table: "orders", params: `{"weights":{"POINT_LOOKUP":1}}`,
			check: "privileges", outcome: "warning", field: "target.table_name", words: "sees no table",
			fix: "correct target.table_name; or, if the table is there: GRANT SELECT ON TABLE"},
		{name: "everything in the schema", adapter: "snowflake_standard", table: "orders", params: everyKind,
			grants: []string{"GRANT ALL ON FUTURE TABLES IN SCHEMA public"}},
		{name: "a table is made", adapter: "snowflake_standard", table: "made", params: everyKind,
			ifExists: engine.IfExistsUse,
			check:    "privileges", outcome: "failed", field: "target.prepare",
			words: "is not granted CREATE TABLE in the schema",
			fix:   `GRANT CREATE TABLE ON SCHEMA "LOADSTONE"."PUBLIC" TO ROLE`, alone: true},
		{name: "a hybrid table is made", adapter: "snowflake_hybrid", table: "madeh", params: everyKind,
			ifExists: engine.IfExistsUse,
			check:    "privileges", outcome: "failed", field: "target.prepare", words: "CREATE HYBRID TABLE",
			fix: `GRANT CREATE HYBRID TABLE ON SCHEMA "LOADSTONE"."PUBLIC" TO ROLE`, alone: true},
		{name: "with the right of before", adapter: "snowflake_hybrid", table: "madeh2", params: everyKind,
			ifExists: engine.IfExistsUse, grants: []string{"GRANT CREATE TABLE ON SCHEMA public"},
			check: "privileges", outcome: "warning", field: "target.prepare", words: "and not CREATE HYBRID TABLE",
			fix: `GRANT CREATE HYBRID TABLE ON SCHEMA`, alone: true},
		{name: "an interactive table is made", adapter: "snowflake_interactive", table: "madei",
			params: `{"weights":{"POINT_LOOKUP":1}}`, ifExists: engine.IfExistsUse,
			check: "privileges", outcome: "failed", field: "target.prepare", words: "CREATE TABLE and CREATE INTERACTIVE TABLE",
			fix: `GRANT CREATE TABLE, CREATE INTERACTIVE TABLE ON SCHEMA`, alone: true},
		{name: "somebody else's table is replaced", adapter: "snowflake_standard", table: "orders", params: everyKind,
			ifExists: engine.IfExistsRecreate,
			grants:   []string{"GRANT ALL ON TABLE orders", "GRANT CREATE TABLE ON SCHEMA public"},
			check:    "privileges", outcome: "failed", field: "target.prepare.if_exists", words: "does not own the table",
			fix: "set if_exists: use to keep it; or GRANT OWNERSHIP ON TABLE"},
		{name: "several tables", adapter: "snowflake_hybrid", table: "b" + "_", params: `{"scale":1}`,
			ifExists: engine.IfExistsUse, grants: []string{"GRANT CREATE HYBRID TABLE ON SCHEMA public"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			role := "R" + string(rune('A'+i))
			admin := &snow{T: t, host: s.host, dsn: s.dsn, db: s.db}
			admin.exec("CREATE ROLE "+role, "GRANT USAGE, OPERATE, MONITOR ON WAREHOUSE "+wh+" TO ROLE "+role)
			for _, g := range c.grants {
				admin.exec(g + " TO ROLE " + role)
			}
			workload := "mix"
			if strings.Contains(c.params, "scale") {
				workload = "tpcb"
			}
			var prep *engine.Prepare
			if c.ifExists != "" {
				prep = &engine.Prepare{IfExists: c.ifExists}
				if workload == "mix" {
					prep.Rows = 100
				}
			}
			sc := admin.as(role).scenario(c.adapter, workload, c.table, c.params, prep)
			f := admin.inspect(sc)
			if c.check == "" {
				if !f.OK || found(f, "privileges", "failed") != nil || found(f, "privileges", "warning") != nil {
					t.Fatalf("%+v", f.Checks)
				}
			} else {
				got := found(f, c.check, c.outcome)
				if got == nil || got.Field != c.field || !strings.Contains(got.Message, c.words) ||
					!strings.Contains(got.Message, role) || !strings.HasPrefix(got.Fix, c.fix) || f.OK && c.outcome == "failed" {
					t.Fatalf("%+v", f.Checks)
				}
				if _, err := prepare.Plan(context.Background(), admin.deps(), sc, nil); c.outcome == "failed" &&
					(!engine.HasCode(err, engine.CodeTarget) || !strings.Contains(err.Error(), got.Message) ||
						!strings.Contains(err.Error(), c.field)) {
					t.Errorf("the run began: %v", err)
				}
				if !c.alone {
					return
				}
				admin.exec(got.Fix)
				if f = admin.inspect(sc); !f.OK || found(f, c.check, c.outcome) != nil {
					t.Fatalf("after %s: %+v", got.Fix, f.Checks)
				}
			}
			p := admin.prepare(sc)
			if c.adapter != "snowflake_interactive" && workload == "mix" {
				admin.as(role).load(sc, p, 100*time.Millisecond)
			}
		})
	}
}

// TestRightsOfOtherRoles: roles in roles and secondary roles count, but for making tables.
func TestRightsOfOtherRoles(t *testing.T) {
	t.Parallel()
	s := newSnow(t)
	s.exec("CREATE TABLE orders (id NUMBER, note VARCHAR(100), PRIMARY KEY (id))", "INSERT INTO orders VALUES (1, 'x')",
		"CREATE ROLE bench", "CREATE ROLE reader", "CREATE ROLE writer",
		"GRANT USAGE, MONITOR ON WAREHOUSE "+snowsim.DefaultWarehouse+" TO ROLE public",
		"GRANT SELECT ON TABLE orders TO ROLE reader", "GRANT INSERT, UPDATE, DELETE ON TABLE orders TO ROLE writer",
		"GRANT ROLE reader TO ROLE bench")
	sc := s.as("BENCH").scenario("snowflake_standard", "mix", "orders", everyKind, nil)
	if f := s.inspect(sc); f.OK || found(f, "privileges", "failed") == nil ||
		!strings.Contains(found(f, "privileges", "failed").Message, "INSERT, UPDATE and DELETE") {
		t.Fatalf("%+v", f.Checks)
	}
	s.exec("GRANT ROLE writer TO USER " + snowsim.DefaultUser)
	f := s.inspect(sc)
	if ok := found(f, "privileges", "ok"); !f.OK || ok == nil ||
		!strings.Contains(ok.Message, "SELECT, INSERT, UPDATE, DELETE") ||
		!strings.Contains(found(f, "role", "ok").Message, "secondary roles") {
		t.Fatalf("%+v", f.Checks)
	}
	s.as("BENCH").load(sc, s.prepare(sc), 100*time.Millisecond)
	// To make a table the secondary role's right may not be enough, and is not.
	s.exec("GRANT CREATE TABLE ON SCHEMA public TO ROLE writer")
	sc = s.as("BENCH").scenario("snowflake_standard", "mix", "made", everyKind,
		&engine.Prepare{Rows: 10, IfExists: engine.IfExistsUse})
	if f = s.inspect(sc); !f.OK || found(f, "privileges", "warning") == nil ||
		!strings.Contains(found(f, "privileges", "warning").Message, "the primary role alone makes tables") {
		t.Fatalf("%+v", f.Checks)
	}
	_, err := prepare.Plan(context.Background(), s.deps(), sc, nil)
	if e := engine.AsError(err); !engine.HasCode(err, engine.CodeTarget) ||
		!strings.Contains(e.Message, "The role BENCH may not do that") || !strings.Contains(e.Hint, "EXPLAIN_PRIVILEGES") {
		t.Errorf("%v", err)
	}
}

// TestRightsThatAreTakenAway: what --deny does, in the grants and at an execution.
func TestRightsThatAreTakenAway(t *testing.T) {
	t.Parallel()
	s := newSnow(t, func(o *snowsim.Options) { o.Denied = []translate.Denied{{Privilege: "UPDATE"}} })
	s.exec("CREATE TABLE orders (id NUMBER, note VARCHAR(100), PRIMARY KEY (id))", "INSERT INTO orders VALUES (1, 'x')")
	f := s.inspect(s.scenario("snowflake_standard", "mix", "orders", everyKind, nil))
	if c := found(f, "privileges", "failed"); c == nil ||
		c.Fix != `GRANT UPDATE ON TABLE "LOADSTONE"."PUBLIC"."ORDERS" TO ROLE "SYSADMIN"` {
		t.Errorf("%+v", f.Checks)
	}
	err := s.db.Exec(t.Context(), "UPDATE orders SET note = 'y' WHERE id = 1")
	if got := s.db.Classify(err); got.Code != "003001" || got.Class != engine.ErrClassAuth {
		t.Errorf("%+v", got)
	}
}

// TestFeaturesOfAccounts: what region, kind and edition of an account lack is told, before
// anything is made where it can be known, and by the error's explanation where it cannot.
func TestFeaturesOfAccounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                   string
		contract               translate.Contract
		adapter, params        string
		check, outcome, fix    string
		message, hint, atStart string
	}{
		{"Google Cloud", translate.Contract{Region: "GCP_US_CENTRAL1"}, "snowflake_hybrid", "", "region", "failed",
			"snowflake_standard", "no hybrid tables on Google Cloud", "snowflake_standard", "no hybrid tables on Google Cloud"},
		{"the government", translate.Contract{Region: "PUBLIC.AWS_US_GOV_WEST_1"}, "snowflake_hybrid", "", "region", "failed",
			"snowflake_standard", "US government", "snowflake_standard", "US government"},
		{"a trial account", translate.Contract{Region: "AWS_EU_CENTRAL_1", Trial: true}, "snowflake_hybrid", "", "", "", "",
			"makes no hybrid tables", "not in trial accounts", ""},
		{"Standard edition", translate.Contract{Region: "AWS_EU_CENTRAL_1", Standard: true}, "snowflake_standard",
			`{"search_optimization":true}`, "edition", "warning", "leave target.params.search_optimization out",
			"has no search optimization", "Enterprise edition", "Enterprise edition"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSnow(t, func(o *snowsim.Options) { o.Contract = c.contract })
			sc := s.scenario(c.adapter, "mix", "orders", everyKind, &engine.Prepare{Rows: 10, IfExists: engine.IfExistsUse})
			sc.Target.Params = json.RawMessage(c.params)
			f := s.inspect(sc)
			if c.check != "" {
				if got := found(f, c.check, c.outcome); got == nil || !strings.Contains(got.Message, c.atStart) ||
					!strings.Contains(got.Fix, c.fix) || got.Field == "" {
					t.Errorf("%+v", f.Checks)
				}
			}
			_, err := prepare.Plan(context.Background(), s.deps(), sc, nil)
			var e *engine.Error
			if !errors.As(err, &e) || e.Code != engine.CodeTarget || !strings.Contains(e.Message, c.message) ||
				!strings.Contains(e.Error(), c.hint) {
				t.Errorf("%v", err)
			}
			if n := s.one("SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = CURRENT_SCHEMA()"); n != "0" {
				t.Errorf("%s tables are left", n)
			}
		})
	}
}
