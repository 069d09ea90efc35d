package bundled_test

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/enrich"
	"github.com/loadstone-db/loadstone/snowsim"
	"github.com/loadstone-db/loadstone/snowsim/history"
)

// bare is a connection string without database and schema.
func bare(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/"
	return strings.Replace(u.String(), "/?", "?", 1)
}

// TestNothingCurrentIsNeeded: a connection that chooses neither database nor schema serves a whole run on a table by its
// full name, for each type of table; the history is read then too, also by a role that monitors no warehouse, and what
// others do does not fill its pages.
func TestNothingCurrentIsNeeded(t *testing.T) {
	t.Parallel()
	s := newSnow(t, func(o *snowsim.Options) { o.History.Short = -1 })
	s.exec("CREATE ROLE runner", "GRANT USAGE ON WAREHOUSE LOADSTONE_WH TO ROLE runner",
		"GRANT CREATE TABLE, CREATE HYBRID TABLE, CREATE INTERACTIVE TABLE ON SCHEMA LOADSTONE.PUBLIC TO ROLE runner",
		"GRANT USAGE ON SCHEMA LOADSTONE.PUBLIC TO ROLE runner", "GRANT ROLE runner TO USER loadstone")
	s.dsn = strings.Replace(bare(t, s.dsn), "role=SYSADMIN", "role=RUNNER", 1)
	for _, of := range []string{"standard", "hybrid", "interactive"} {
		sc := s.scenario("snowflake_"+of, "mix", "LOADSTONE.PUBLIC.BARE_"+strings.ToUpper(of),
			`{"weights":{"POINT_LOOKUP":1}}`, &engine.Prepare{Rows: prepared, IfExists: engine.IfExistsUse})
		p := s.prepare(sc)
		from := time.Now().Add(-time.Minute)
		s.load(sc, p, 200*time.Millisecond)
		for range 12_000 { // more than a page of the history of others
			now := time.Now()
			s.server.History().Add(&history.Record{Context: history.Context{User: "OTHER", Warehouse: "LOADSTONE_WH"},
				Text: "SELECT 1", QueryType: "SELECT", Table: "standard", Start: now.Add(-time.Millisecond), End: now})
		}
		a, err := prepare.Attach(t.Context(), s.deps(), sc, p.Plan, "enrichment")
		if err != nil {
			t.Fatal(err)
		}
		answer, err := a.CallAdapter(t.Context(), plugin.AdapterRequest{Op: plugin.OpEnrich, RunID: "r",
			TableName: sc.Target.TableName, NowMs: time.Now().UnixMilli()})
		if err != nil || answer.Enrich == nil {
			t.Fatalf("%s: %+v, %v", of, answer, err)
		}
		if err := prepare.ReadOnly(a.Dialect(), answer.Enrich.Page, answer.Enrich.Aggregate); err != nil {
			t.Error(err)
		}
		rows, known := 0, 0
		err = enrich.NewHistory(a.Database(), *answer.Enrich).Page(context.Background(), from, time.Now().Add(time.Minute),
			func(e *engine.EnrichedExecution) error {
				if rows++; e.QueryID != (engine.QueryID{}) {
					known++
				}
				return nil
			})
		if err != nil || known == 0 || rows > 10_000-1 {
			t.Errorf("%s: a page has %d rows, %d of them ours: %v", of, rows, known, err)
		}
		a.Close()
		// From now on the role may see what others execute.
		s.exec("GRANT MONITOR ON WAREHOUSE LOADSTONE_WH TO ROLE runner")
		// Without a schema the name is refused where it is written, not by the account.
		sc.Target.TableName = "bare_" + of
		_, err = prepare.Plan(context.Background(), s.deps(), sc, nil)
		refused(t, err, "target.table_name", "chooses no database")
	}
}

// TestTokensEndAtEachStep: whichever request of a run's preparation and load meets a session token that has expired, or
// a session that has ended, the table has its rows once, and the load goes on.
func TestTokensEndAtEachStep(t *testing.T) {
	t.Parallel()
	s := newSnow(t)
	for i, f := range []string{"expired,every=2", "expired,every=3", "ended,every=7", "ended,every=5"} {
		fault, err := snowsim.ParseFault(f)
		if err != nil {
			t.Fatal(err)
		}
		of := []string{"standard", "hybrid", "interactive"}[i%3]
		sc := s.scenario("snowflake_"+of, "mix", "ends_"+strconv.Itoa(i), `{"weights":{"POINT_LOOKUP":1}}`,
			&engine.Prepare{Rows: prepared, IfExists: engine.IfExistsUse})
		if err := s.server.SetFaults(fault); err != nil {
			t.Fatal(err)
		}
		p, err := prepare.Plan(context.Background(), s.deps(), sc, nil)
		if faultsErr := s.server.SetFaults(); faultsErr != nil {
			t.Fatal(faultsErr)
		}
		if err != nil {
			t.Errorf("%s, %s: %v", f, of, err)
			continue
		}
		if n := s.one("SELECT COUNT(*) || ' ' || COUNT(DISTINCT ID) FROM ends_" + strconv.Itoa(i)); n != "2000 2000" {
			t.Errorf("%s, %s: the table has %s rows", f, of, n)
		}
		if err := s.server.SetFaults(snowsim.Fault{Kind: snowsim.FaultExpired, Every: 3}); err != nil {
			t.Fatal(err)
		}
		s.load(sc, p, 100*time.Millisecond)
		if err := s.server.SetFaults(); err != nil {
			t.Fatal(err)
		}
	}
}
