package translate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/history"
	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// record adds n executions of a run to the history, a millisecond apart, the last at the host's time.
func record(h *host, n int) {
	for i := range n {
		end := h.now.Add(-time.Duration(n-1-i) * time.Millisecond)
		r := history.Record{Context: history.Context{SessionID: int64(7 + i%2), User: "ANNA", Role: "SYSADMIN",
			Database: "LOADSTONE", Schema: "PUBLIC", Warehouse: "WH",
			WarehouseSize: "X-Small", WarehouseType: "STANDARD", Cluster: 1, Tag: `{"run_id":"r1"}`},
			Text: "SELECT * FROM t WHERE id = ?", QueryType: "SELECT", Start: end.Add(-20 * time.Millisecond), End: end,
			Compilation:    5 * time.Millisecond,
			QueuedOverload: 2 * time.Millisecond, Execution: 13 * time.Millisecond, RowsProduced: 1, Table: "hybrid"}
		r.QueryID[0], r.QueryID[12], r.QueryID[13], r.QueryID[14], r.QueryID[15] = 1, byte(i>>24), byte(i>>16), byte(i>>8),
			byte(i)
		if i%100 == 99 {
			r.ErrorCode, r.ErrorMessage = "000604", "SQL execution canceled"
		}
		h.history.Add(&r)
	}
}

func TestHistory(t *testing.T) {
	c := newClient(t)
	record(c.host, 1000)
	const usage, schema = "SNOWFLAKE.ACCOUNT_USAGE.", "INFORMATION_SCHEMA."
	for _, q := range [][2]string{
		{"SELECT COUNT(*) FROM TABLE(" + schema + "QUERY_HISTORY())", "100"},
		{"SELECT COUNT(*) FROM TABLE(loadstone.information_schema.query_history(RESULT_LIMIT => 10000))", "1000"},
		{"SELECT COUNT(*) FROM TABLE(" + schema + "QUERY_HISTORY(RESULT_LIMIT => 10000)) WHERE error_code IS NOT NULL", "10"},
		{"SELECT SUM(calls) FROM " + usage + "AGGREGATE_QUERY_HISTORY WHERE warehouse_name = 'WH'", "1000"},
		{"SELECT SUM(total_elapsed_time:\"sum\"::FLOAT) / SUM(calls) > 19 FROM " + usage + "AGGREGATE_QUERY_HISTORY", "t"},
		{"SELECT MAX(EXECUTION_TIME:p99::NUMBER) FROM " + usage + "AGGREGATE_QUERY_HISTORY", "13"},
	} {
		sql, want := q[0], q[1]
		// The aggregates of a minute are there when it is over.
		c.host.now = c.host.now.Add(2 * time.Minute)
		got := printed(c.must(sql))
		c.host.now = c.host.now.Add(-2 * time.Minute)
		if _, value, _ := strings.Cut(strings.TrimSpace(got), "\n"); strings.TrimSuffix(value, ".0000000000000000") != want {
			t.Errorf("%s is %s, want %s", sql, value, want)
		}
	}
	for _, sql := range []string{"SELECT * FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY(RESULT_LIMIT => 10001))",
		"SELECT * FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY(NOTHING => 1))",
		"SELECT * FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY(END_TIME_RANGE_START => DATEADD(day, -8, CURRENT_TIMESTAMP())))"} {
		if _, err := c.exec(sql); !isCode(err, "001018") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	c.host.now = c.host.now.Add(2 * time.Minute)
	from, to := bind("text", c.host.now.Add(-time.Hour).Format(time.RFC3339Nano)),
		bind("timestamp_ltz", c.host.now.Format("2006-01-02 15:04:05.999999-07"))
	aggregated := c.must(
		`SELECT QUERY_TYPE, QUERY_TEXT, SUM(CALLS) AS CALLS, SUM(HYBRID_TABLE_REQUESTS_THROTTLED_COUNT) AS THROTTLED, MIN(INTERVAL_START_TIME) AS A, MAX(INTERVAL_END_TIME) AS B,
		SUM(TOTAL_ELAPSED_TIME:"median"::FLOAT * CALLS) AS P50_CALLS, SUM(TOTAL_ELAPSED_TIME:"p99.9"::FLOAT * CALLS) AS P999_CALLS, MAX(TOTAL_ELAPSED_TIME:"max"::FLOAT) AS MAX_MS
		FROM SNOWFLAKE.ACCOUNT_USAGE.AGGREGATE_QUERY_HISTORY WHERE INTERVAL_END_TIME >= TO_TIMESTAMP_LTZ(?) AND INTERVAL_START_TIME <= TO_TIMESTAMP_LTZ(?) AND CONTAINS(QUERY_TAG, ?)
		GROUP BY QUERY_TYPE, QUERY_TEXT`,
		from,
		to,
		bind("text", "r1"),
	)
	if len(aggregated.Rows) != 1 || aggregated.Rows[0][2] != "1000" || aggregated.Rows[0][8] != "20" {
		t.Errorf("aggregates:\n%s", printed(aggregated))
	}
	paged := c.must("SELECT QUERY_ID, END_TIME FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY(END_TIME_RANGE_START => "+
		"TO_TIMESTAMP_LTZ(?), END_TIME_RANGE_END => TO_TIMESTAMP_LTZ(?), RESULT_LIMIT => 10000))", from, to)
	if len(paged.Rows) != 1000 {
		t.Errorf("%d executions between two bound times", len(paged.Rows))
	}
	r := c.must("SELECT * FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY(RESULT_LIMIT => 1))")
	if len(r.Columns) < 25 || len(r.Rows) != 1 {
		t.Errorf("%d columns, %d rows", len(r.Columns), len(r.Rows))
	}
	for sql, want := range map[string]string{
		"SELECT * FROM SNOWFLAKE.ACCOUNT_USAGE.QUERY_HISTORY":                        "000002",
		"SELECT * FROM TABLE(nowhere.INFORMATION_SCHEMA.QUERY_HISTORY())":            "002004",
		"SELECT * FROM TABLE(INFORMATION_SCHEMA.LOGIN_HISTORY())":                    "002141",
		"SELECT * FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY(RESULT_LIMIT => 0))":   "001018",
		"SELECT * FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY(RESULT_LIMIT => 'x'))": "100038",
	} {
		if _, err := c.exec(sql); !isCode(err, want) {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func BenchmarkHistoryPage(b *testing.B) {
	c := newClient(b)
	record(c.host, 100_000)
	for b.Loop() {
		r := c.must("SELECT query_id, start_time, end_time, total_elapsed_time, compilation_time, execution_time, "+
			"queued_provisioning_time, queued_repair_time, queued_overload_time, "+
			"warehouse_name, cluster_number, rows_produced, bytes_scanned, error_code, query_tag FROM "+
			"TABLE(INFORMATION_SCHEMA.QUERY_HISTORY(END_TIME_RANGE_START => ?::TIMESTAMP_LTZ, "+
			"END_TIME_RANGE_END => TO_TIMESTAMP_LTZ(?), RESULT_LIMIT => 10000)) WHERE query_tag = ? ORDER BY end_time",
			bind("text", c.host.now.Add(-time.Hour).Format(time.RFC3339Nano)),
			bind("text", c.host.now.Format(time.RFC3339Nano)), bind("text", `{"run_id":"r1"}`))
		if len(r.Rows) != 10_000 {
			b.Fatal(fmt.Sprint(len(r.Rows), protocol.Select))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/page")
}
