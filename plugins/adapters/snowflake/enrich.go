package snowflake

import (
	"errors"
	"strings"

	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake/dialect"
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

const (
	// pageSize is the most that QUERY_HISTORY gives at once.
	pageSize = 10_000
	// pageSQL takes the database: the function belongs to one, whichever it is. What others do does not fill its pages.
	pageSQL = `SELECT QUERY_ID, END_TIME, TOTAL_ELAPSED_TIME, COMPILATION_TIME, EXECUTION_TIME, QUEUED_PROVISIONING_TIME, QUEUED_REPAIR_TIME,
  QUEUED_OVERLOAD_TIME, TRANSACTION_BLOCKED_TIME, EXECUTION_STATUS, CLUSTER_NUMBER
FROM TABLE({database}.INFORMATION_SCHEMA.QUERY_HISTORY_BY_USER(END_TIME_RANGE_START => TO_TIMESTAMP_LTZ(?), END_TIME_RANGE_END => TO_TIMESTAMP_LTZ(?), RESULT_LIMIT => 10000))`
	// aggregateSQL finds the run by its id, which is in the QUERY_TAG of its sessions.
	aggregateSQL = `SELECT QUERY_TYPE, QUERY_TEXT, SUM(CALLS) AS CALLS, SUM(HYBRID_TABLE_REQUESTS_THROTTLED_COUNT) AS THROTTLED,
  MIN(INTERVAL_START_TIME) AS INTERVAL_START, MAX(INTERVAL_END_TIME) AS INTERVAL_END,
  SUM(TOTAL_ELAPSED_TIME:"sum"::FLOAT) AS SUM_MS, SUM(COMPILATION_TIME:"sum"::FLOAT) AS COMPILATION_SUM_MS, SUM(EXECUTION_TIME:"sum"::FLOAT) AS EXECUTION_SUM_MS,
  SUM(QUEUED_OVERLOAD_TIME:"sum"::FLOAT) AS QUEUED_SUM_MS,
  SUM(TOTAL_ELAPSED_TIME:"median"::FLOAT * CALLS) AS P50_CALLS, SUM(TOTAL_ELAPSED_TIME:"p90"::FLOAT * CALLS) AS P90_CALLS,
  SUM(TOTAL_ELAPSED_TIME:"p99"::FLOAT * CALLS) AS P99_CALLS, SUM(TOTAL_ELAPSED_TIME:"p99.9"::FLOAT * CALLS) AS P999_CALLS,
  MAX(TOTAL_ELAPSED_TIME:"max"::FLOAT) AS MAX_MS
FROM SNOWFLAKE.ACCOUNT_USAGE.AGGREGATE_QUERY_HISTORY
WHERE INTERVAL_END_TIME >= TO_TIMESTAMP_LTZ(?) AND INTERVAL_START_TIME <= TO_TIMESTAMP_LTZ(?) AND CONTAINS(QUERY_TAG, ?)
GROUP BY QUERY_TYPE, QUERY_TEXT`
	// aggregateDelay is the latency that Snowflake documents for the view.
	aggregateDelay = 3 * 60 * 60
	// clockTolerance is how far the clocks may differ before it is made up for, in
	// ms: the question itself takes some of it.
	clockTolerance = 5_000
)

// enrich says how the account's history is read.
func (a Adapter) enrich(req *jsondoc.Value, w *jsondoc.Writer) error {
	if missesAbility(req, noHistory) {
		w.Object().Key("enrich").Object().Key("skip").
			Str(
				"The server is an emulator of Snowflake without a history of single queries; the recorded executions are the " +
					"source.").EndObject().EndObject()
		return nil
	}
	clock := sdk.ResultOf(req, "clock")
	if !clock.Asked {
		sdk.Ask(w, sdk.Query{ID: "clock", SQL: "SELECT DATE_PART(EPOCH_MILLISECOND, CURRENT_TIMESTAMP())"})
		return nil
	}
	if clock.Err != "" {
		return errors.New("reading the account's clock: " + clock.Err)
	}
	offset := int64(0)
	now, ok := req.Get("now_ms").Int()
	account, known := epoch(clock.Rows.At(0).At(0))
	if ok && known {
		if offset = account - now; offset < clockTolerance && offset > -clockTolerance {
			offset = 0
		}
	}
	// Whatever table it is, an interactive warehouse leaves its short queries out.
	interactive := a.tableType == Interactive
	if a.tableType == Standard && req.Get("warehouse").Str() != "" {
		_, h, ok, err := findWarehouse(req, w)
		if err == nil && !ok {
			return nil
		}
		interactive = h != nil && strings.EqualFold(h.text("type"), "INTERACTIVE")
	}
	database, ok := historyDatabase(req, w)
	if !ok {
		return nil
	}
	page := strings.Replace(pageSQL, "{database}", dialect.Quoted(database), 1)
	w.Object().Key("enrich").Object().Key("page").Str(page).Key("page_size").Int(pageSize).Key("clock_offset_ms").
		Int(offset)
	if a.tableType == Hybrid || interactive {
		w.Key("aggregate").Str(aggregateSQL).Key("aggregate_delay_seconds").Int(aggregateDelay)
	}
	switch {
	case a.tableType == Hybrid:
		w.Key("note").Str("Snowflake leaves short queries on hybrid tables out of the query history, so a low ratio is " +
			"normal, and what was found is the slow part. Judge a hybrid table by the client's figures and by the account's " +
			"aggregates.")
	case interactive:
		w.Key("note").Str("Snowflake leaves short queries on interactive tables and warehouses out of the query history, " +
			"so a low ratio is normal, and what was found is the slow part. The account's aggregates count them all.")
	}
	w.EndObject().EndObject()
	return nil
}

// anyDatabase is a database of Snowflake's own that every account has.
const anyDatabase = "SNOWFLAKE"

// historyDatabase is a database that is there: that of the run's table, else the session's, else one that the role
// sees. ok is false while the host is being asked.
func historyDatabase(req *jsondoc.Value, w *jsondoc.Writer) (database string, ok bool) {
	name, _ := dialect.ParseName(req.Get("table_name").Str())
	if database = name.Database.Name(); database == "" {
		here := sdk.ResultOf(req, whereQuery.ID)
		if !here.Asked {
			sdk.Ask(w, whereQuery)
			return "", false
		}
		database = here.Rows.At(0).At(0).Str()
	}
	own, others := sdk.ResultOf(req, "database"), sdk.ResultOf(req, "databases")
	if !others.Asked {
		ask := []sdk.Query{{ID: "databases", SQL: "SHOW DATABASES LIMIT 50"}}
		if database != "" {
			ask = append(ask, sdk.Query{ID: "database", SQL: "SHOW DATABASES LIKE " + dialect.Pattern(database)})
		}
		sdk.Ask(w, ask...)
		return "", false
	}
	if own.Err != "" {
		return database, true
	}
	for i := range own.Rows.Len() {
		if field(own, i, "name") == database {
			return database, true
		}
	}
	for i := range others.Rows.Len() {
		if kind := field(others, i, "kind"); kind == "" || strings.EqualFold(kind, "STANDARD") {
			return field(others, i, "name"), true
		}
	}
	return anyDatabase, true
}

// epoch reads a number that may be written as text.
func epoch(v *jsondoc.Value) (int64, bool) {
	if n, ok := v.Int(); ok {
		return n, true
	}
	n := int64(0)
	for _, c := range v.Str() {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, v.Str() != ""
}
