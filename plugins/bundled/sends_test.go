package bundled_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

// TestBundledAdaptersDeclareWhatTheyRead: no pattern of theirs approves any SELECT, and
// what they ask after a run and meanwhile is declared as well.
func TestBundledAdaptersDeclareWhatTheyRead(t *testing.T) {
	t.Parallel()
	h := hosttest.Bundled(t)
	for _, name := range []string{"postgres", "snowflake_postgres", "snowflake_standard", "snowflake_hybrid",
		"snowflake_interactive"} {
		a, err := h.Adapter(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		m := a.Info().Manifest
		sends, tables := m.Patterns(), []string{"orders"}
		for _, sql := range []string{"SELECT 1 FROM accounts", "SELECT pg_read_file('/etc/passwd')",
			"SELECT * FROM pg_catalog.pg_authid",
			"WITH RECURSIVE base AS (SELECT rolpassword FROM pg_catalog.pg_authid) SELECT 1 FROM base",
			"SELECT SYSTEM$WAIT(1)", "SHOW USERS", "SELECT * FROM SNOWFLAKE.ACCOUNT_USAGE.LOGIN_HISTORY"} {
			if plugin.Allows(sends.Query, sql, m.Dialect, tables) {
				t.Errorf("%s may ask %s", name, sql)
			}
		}
		if plugin.Allows(sends.Statements, "SELECT id, pg_sleep(1) FROM orders WHERE id = $1", m.Dialect, tables) {
			t.Errorf("%s may call any function under load", name)
		}
		if m.Dialect != "snowflake" {
			continue
		}
		for _, op := range []string{plugin.OpEnrich, plugin.OpPoll} {
			results := map[string]plugin.QueryResult{}
			for range 5 {
				var answer plugin.AdapterAnswer
				if err := a.Call(t.Context(),
					plugin.AdapterRequest{Op: op, TableName: "orders", Warehouse: map[string]string{plugin.OpPoll: "WH"}[op],
						RunID: "x", Results: results}, &answer); err != nil {
					if len(results) == 0 {
						t.Fatal(err)
					}
					break // the warehouse that it asked for is not there
				}
				requested := answer.Queries
				if answer.Enrich != nil {
					requested = append(requested, plugin.Query{SQL: answer.Enrich.Page})
					if answer.Enrich.Aggregate != "" {
						requested = append(requested, plugin.Query{SQL: answer.Enrich.Aggregate})
					}
				}
				for _, q := range requested {
					results[q.ID] = plugin.QueryResult{}
					if !plugin.Allows(sends.Query, q.SQL, m.Dialect, tables) {
						t.Errorf("%s asks %s with what it does not declare: %s", name, op, q.SQL)
					}
				}
				if len(answer.Queries) == 0 {
					break
				}
			}
		}
	}
}
