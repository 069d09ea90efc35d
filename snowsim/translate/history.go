package translate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/history"
	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// column is a column of a history, with its type in Postgres and its value of a row.
func column[T any](name, postgres string, value func(r *T) any) Column[T] {
	return NewColumn(name, postgres, value)
}

// executionColumns are those of QUERY_HISTORY; the view in ACCOUNT_USAGE has them too.
var executionColumns = []Column[history.Record]{
	column("QUERY_ID", "text", func(r *history.Record) any { return queryID(r.QueryID) }),
	column("QUERY_TEXT", "text", func(r *history.Record) any { return r.Text }),
	column("DATABASE_NAME", "text", func(r *history.Record) any { return OrNull(r.Database) }),
	column("SCHEMA_NAME", "text", func(r *history.Record) any { return OrNull(r.Schema) }),
	column("QUERY_TYPE", "text", func(r *history.Record) any { return r.QueryType }),
	column("SESSION_ID", "numeric(38,0)", func(r *history.Record) any { return r.SessionID }),
	column("USER_NAME", "text", func(r *history.Record) any { return r.User }),
	column("ROLE_NAME", "text", func(r *history.Record) any { return OrNull(r.Role) }),
	column("WAREHOUSE_NAME", "text", func(r *history.Record) any { return OrNull(r.Warehouse) }),
	column("WAREHOUSE_SIZE", "text", func(r *history.Record) any { return OrNull(r.WarehouseSize) }),
	column("WAREHOUSE_TYPE", "text", func(r *history.Record) any { return OrNull(r.WarehouseType) }),
	column("CLUSTER_NUMBER", "numeric(38,0)", func(r *history.Record) any { return positive(int64(r.Cluster)) }),
	column("QUERY_TAG", "text", func(r *history.Record) any { return r.Tag }),
	column("EXECUTION_STATUS", "text", func(r *history.Record) any {
		if r.ErrorCode == "" {
			return "SUCCESS"
		}
		return "FAILED"
	}),
	column("ERROR_CODE", "text", func(r *history.Record) any { return OrNull(r.ErrorCode) }),
	column("ERROR_MESSAGE", "text", func(r *history.Record) any { return OrNull(r.ErrorMessage) }),
	column("START_TIME", "timestamptz(3)", func(r *history.Record) any { return r.Start }),
	column("END_TIME", "timestamptz(3)", func(r *history.Record) any { return r.End }),
	column("TOTAL_ELAPSED_TIME", "numeric(38,0)", func(r *history.Record) any { return r.Total().Milliseconds() }),
	column("BYTES_SCANNED", "numeric(38,0)", func(r *history.Record) any { return r.BytesScanned }),
	column("ROWS_PRODUCED", "numeric(38,0)", func(r *history.Record) any { return r.RowsProduced }),
	column("ROWS_INSERTED", "numeric(38,0)", func(r *history.Record) any { return r.RowsInserted }),
	column("ROWS_UPDATED", "numeric(38,0)", func(r *history.Record) any { return r.RowsUpdated }),
	column("ROWS_DELETED", "numeric(38,0)", func(r *history.Record) any { return r.RowsDeleted }),
	column("ROWS_WRITTEN_TO_RESULT", "numeric(38,0)", func(r *history.Record) any { return r.RowsProduced }),
	column("COMPILATION_TIME", "numeric(38,0)", func(r *history.Record) any { return r.Compilation.Milliseconds() }),
	column("EXECUTION_TIME", "numeric(38,0)", func(r *history.Record) any { return r.Execution.Milliseconds() }),
	column("QUEUED_PROVISIONING_TIME", "numeric(38,0)",
		func(r *history.Record) any { return r.QueuedProvisioning.Milliseconds() }),
	column("QUEUED_REPAIR_TIME", "numeric(38,0)", func(*history.Record) any { return int64(0) }),
	column("QUEUED_OVERLOAD_TIME", "numeric(38,0)",
		func(r *history.Record) any { return r.QueuedOverload.Milliseconds() }),
	column("TRANSACTION_BLOCKED_TIME", "numeric(38,0)", func(*history.Record) any { return int64(0) }),
	column("LIST_EXTERNAL_FILES_TIME", "numeric(38,0)", func(*history.Record) any { return int64(0) }),
	column("CREDITS_USED_CLOUD_SERVICES", "double precision", func(*history.Record) any { return float64(0) }),
	column("PERCENTAGE_SCANNED_FROM_CACHE", "double precision", func(*history.Record) any { return float64(0) }),
	column("BYTES_SPILLED_TO_LOCAL_STORAGE", "numeric(38,0)", func(*history.Record) any { return int64(0) }),
	column("BYTES_SPILLED_TO_REMOTE_STORAGE", "numeric(38,0)", func(*history.Record) any { return int64(0) }),
	column("QUERY_HASH", "text", func(r *history.Record) any { return textHash(r.Text) }),
	column("QUERY_PARAMETERIZED_HASH", "text", func(r *history.Record) any { return textHash(r.Text) }),
	column("IS_CLIENT_GENERATED_STATEMENT", "boolean", func(*history.Record) any { return false }),
	column("RELEASE_VERSION", "text", func(*history.Record) any { return strings.Fields(Version)[0] }),
}

// aggregateColumns are those of AGGREGATE_QUERY_HISTORY.
var aggregateColumns = []Column[history.Aggregate]{
	column("CALLS", "numeric(38,0)", func(a *history.Aggregate) any { return a.Calls }),
	column("INTERVAL_START_TIME", "timestamptz(3)", func(a *history.Aggregate) any { return a.IntervalStart }),
	column("INTERVAL_END_TIME", "timestamptz(3)", func(a *history.Aggregate) any { return a.IntervalEnd }),
	column("QUERY_HASH", "text", func(a *history.Aggregate) any { return textHash(a.Text) }),
	column("QUERY_PARAMETERIZED_HASH", "text", func(a *history.Aggregate) any { return textHash(a.Text) }),
	column("QUERY_TEXT", "text", func(a *history.Aggregate) any { return a.Text }),
	column("DATABASE_NAME", "text", func(a *history.Aggregate) any { return OrNull(a.Database) }),
	column("SCHEMA_NAME", "text", func(a *history.Aggregate) any { return OrNull(a.Schema) }),
	column("QUERY_TYPE", "text", func(a *history.Aggregate) any { return a.QueryType }),
	column("SESSION_ID", "numeric(38,0)", func(a *history.Aggregate) any { return positive(a.SessionID) }),
	column("USER_NAME", "text", func(a *history.Aggregate) any { return a.User }),
	column("ROLE_NAME", "text", func(a *history.Aggregate) any { return OrNull(a.Role) }),
	column("ROLE_TYPE", "text", func(*history.Aggregate) any { return "ROLE" }),
	column("WAREHOUSE_NAME", "text", func(a *history.Aggregate) any { return OrNull(a.Warehouse) }),
	column("WAREHOUSE_SIZE", "text", func(a *history.Aggregate) any { return OrNull(a.WarehouseSize) }),
	column("WAREHOUSE_TYPE", "text", func(a *history.Aggregate) any { return OrNull(a.WarehouseType) }),
	column("QUERY_TAG", "text", func(a *history.Aggregate) any { return a.Tag }),
	column("IS_CLIENT_GENERATED_STATEMENT", "boolean", func(*history.Aggregate) any { return false }),
	column("RELEASE_VERSION", "text", func(*history.Aggregate) any { return strings.Fields(Version)[0] }),
	column("ERRORS", "jsonb", func(a *history.Aggregate) any { return failures(a.Errors) }),
	column("TOTAL_ELAPSED_TIME", "jsonb", func(a *history.Aggregate) any { return distribution(a.Total) }),
	column("COMPILATION_TIME", "jsonb", func(a *history.Aggregate) any { return distribution(a.Compilation) }),
	column("EXECUTION_TIME", "jsonb", func(a *history.Aggregate) any { return distribution(a.Execution) }),
	column("QUEUED_OVERLOAD_TIME", "jsonb", func(a *history.Aggregate) any { return distribution(a.QueuedOverload) }),
	column("QUEUED_PROVISIONING_TIME", "jsonb",
		func(*history.Aggregate) any { return distribution(history.Distribution{}) }),
	column("QUEUED_REPAIR_TIME", "jsonb", func(*history.Aggregate) any { return distribution(history.Distribution{}) }),
	column("TRANSACTION_BLOCKED_TIME", "jsonb",
		func(*history.Aggregate) any { return distribution(history.Distribution{}) }),
	column("ROWS_PRODUCED", "jsonb", func(a *history.Aggregate) any { return sum(a.RowsProduced, a.Calls) }),
	column("ROWS_INSERTED", "jsonb", func(a *history.Aggregate) any { return sum(a.RowsInserted, a.Calls) }),
	column("ROWS_UPDATED", "jsonb", func(a *history.Aggregate) any { return sum(a.RowsUpdated, a.Calls) }),
	column("ROWS_DELETED", "jsonb", func(a *history.Aggregate) any { return sum(a.RowsDeleted, a.Calls) }),
	column("BYTES_SCANNED", "jsonb", func(a *history.Aggregate) any { return sum(a.BytesScanned, a.Calls) }),
	column("HYBRID_TABLE_REQUESTS_THROTTLED_COUNT", "numeric(38,0)",
		func(a *history.Aggregate) any { return a.Throttled }),
}

// usage is an hour of a warehouse, or of the requests to hybrid tables.
type usage struct {
	start     time.Time
	warehouse string
	credits   float64
	requests  int64
}

// meteringColumns are those of WAREHOUSE_METERING_HISTORY.
var meteringColumns = []Column[usage]{
	column("START_TIME", "timestamptz(3)", func(u *usage) any { return u.start }),
	column("END_TIME", "timestamptz(3)", func(u *usage) any { return u.start.Add(time.Hour) }),
	column("WAREHOUSE_NAME", "text", func(u *usage) any { return u.warehouse }),
	column("CREDITS_USED", "numeric(38,9)", func(u *usage) any { return fmt.Sprintf("%.9f", u.credits) }),
	column("CREDITS_USED_COMPUTE", "numeric(38,9)", func(u *usage) any { return fmt.Sprintf("%.9f", u.credits) }),
	column("CREDITS_USED_CLOUD_SERVICES", "numeric(38,9)", func(*usage) any { return "0" }),
}

// hybridColumns are those of HYBRID_TABLE_USAGE_HISTORY.
var hybridColumns = []Column[usage]{
	column("START_TIME", "timestamptz(3)", func(u *usage) any { return u.start }),
	column("END_TIME", "timestamptz(3)", func(u *usage) any { return u.start.Add(time.Hour) }),
	column("CREDITS_USED", "numeric(38,9)", func(u *usage) any { return fmt.Sprintf("%.9f", u.credits) }),
	column("REQUESTS", "numeric(38,0)", func(u *usage) any { return u.requests }),
}

func queryID(id [16]byte) string {
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func positive(n int64) any {
	if n <= 0 {
		return nil
	}
	return n
}

func textHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

func failures(errors map[string]int64) any {
	codes := make([]string, 0, len(errors))
	for code := range errors {
		codes = append(codes, code)
	}
	sort.Strings(codes)
	all := make([]map[string]any, len(codes))
	for i, code := range codes {
		all[i] = map[string]any{"code": code, "message": "", "count": errors[code]}
	}
	return asJSON(all)
}

func distribution(d history.Distribution) any {
	return asJSON(map[string]float64{"sum": d.Sum, "avg": d.Avg, "min": d.Min, "max": d.Max, "median": d.Median,
		"p90": d.P90, "p99": d.P99, "p99.9": d.P999, "stddev": d.StdDev})
}

// sum is what the aggregates keep of counts: no more than the sum and the average.
func sum(n, calls int64) any {
	if calls == 0 {
		calls = 1
	}
	return asJSON(map[string]float64{"sum": float64(n), "avg": float64(n) / float64(calls)})
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "null" // NaN and infinity have no JSON
	}
	return string(b)
}

// page is how many executions are read from the store at once.
const page = 20_000

// executions reads the executions that match, the latest first, page by page.
func executions(store *history.Store, f history.Filter) func() (*history.Record, bool) {
	var rows []history.Record
	left := f.Limit
	if left <= 0 {
		left = math.MaxInt
	}
	at, done := 0, false
	var seen map[[16]byte]bool // those of the last moment of the page before
	return func() (*history.Record, bool) {
		for at == len(rows) {
			if done || left <= 0 {
				return nil, false
			}
			f.Limit = min(left, page) + len(seen)
			rows = store.Query(f)
			done = len(rows) < f.Limit
			rows = slices.DeleteFunc(rows, func(r history.Record) bool { return seen[r.QueryID] })
			at, left = 0, left-len(rows)
			if len(rows) > 0 {
				f.To = rows[len(rows)-1].End
				seen = map[[16]byte]bool{}
				for i := len(rows) - 1; i >= 0 && rows[i].End.Equal(f.To); i-- {
					seen[rows[i].QueryID] = true
				}
			}
		}
		at++
		return &rows[at-1], true
	}
}

// historyFunction reads TABLE([db.]INFORMATION_SCHEMA.QUERY_HISTORY…(…)).
func (p *Parser) historyFunction() string {
	parts := []string{p.AnyIdentifier()}
	for p.AcceptSymbol(".") {
		parts = append(parts, p.AnyIdentifier())
	}
	function := parts[len(parts)-1]
	if len(parts) > 1 && parts[len(parts)-2] != "INFORMATION_SCHEMA" {
		p.Fail(protocol.CompilationError("002141", "42601", "Unknown user-defined table function %s", strings.Join(parts, ".")))
	}
	arguments := map[string]string{}
	order := []string{"END_TIME_RANGE_START", "END_TIME_RANGE_END", "RESULT_LIMIT"}
	switch function {
	case "QUERY_HISTORY":
	case "QUERY_HISTORY_BY_SESSION":
		order = append([]string{"SESSION_ID"}, order...)
	case "QUERY_HISTORY_BY_USER":
		order = append([]string{"USER_NAME"}, order...)
	case "QUERY_HISTORY_BY_WAREHOUSE":
		order = append([]string{"WAREHOUSE_NAME"}, order...)
	case "WAREHOUSE_METERING_HISTORY":
		order = []string{"DATE_RANGE_START", "DATE_RANGE_END", "WAREHOUSE_NAME"}
	default:
		p.Fail(protocol.CompilationError("002141", "42601", "Unknown table function %s", function))
	}
	outer := p.Inline
	p.Inline = true // what the arguments are is asked before the statement runs
	p.InParentheses(func() {
		for i := 0; !p.IsSymbol(")"); i++ {
			key := ""
			if n := p.PeekAt(1); n.Kind == Symbol && n.Text == "=>" {
				key = p.AnyIdentifier()
				p.Advance(1)
			} else if i < len(order) {
				key = order[i]
			}
			if !slices.Contains(order, key) {
				p.Fail(protocol.CompilationError("001018", "22023", "invalid argument '%s' for function %s", key, function))
			}
			arguments[key] = p.SQL()
			if !p.AcceptSymbol(",") {
				return
			}
		}
	})
	p.Inline = outer
	if function == "WAREHOUSE_METERING_HISTORY" {
		return p.metering(arguments)
	}
	store, now := p.Account.Host.History(), p.Account.Host.Now()
	session, current := p.Session.ID, p.Session.Warehouse
	user := p.Session.User
	return FromRows(p, "history", executionColumns,
		func(ctx context.Context, conn *pgx.Conn) (func() (*history.Record, bool), error) {
			f := history.Filter{Limit: 100, Now: now}
			given, err := evaluate(ctx, conn, arguments,
				map[string]string{"END_TIME_RANGE_START": "timestamptz", "END_TIME_RANGE_END": "timestamptz",
					"RESULT_LIMIT": "bigint", "SESSION_ID": "bigint"})
			if err != nil {
				return nil, err
			}
			if limit, ok := given["RESULT_LIMIT"].(int64); ok {
				if limit < 1 || limit > 10000 {
					return nil, protocol.CompilationError("001018", "22023",
						"argument 'RESULT_LIMIT' to table function %s needs to be between 1 and 10000, got %d", function, limit)
				}
				f.Limit = int(limit)
			}
			if from, ok := given["END_TIME_RANGE_START"].(time.Time); ok {
				if now.Sub(from) > 7*24*time.Hour+time.Minute {
					return nil, protocol.CompilationError("001018", "22023",
						"cannot retrieve data from more than 7 days ago for table function %s", function)
				}
				f.From = from
			}
			if to, ok := given["END_TIME_RANGE_END"].(time.Time); ok {
				f.To = to
			}
			switch function {
			case "QUERY_HISTORY_BY_SESSION":
				f.SessionID = session
				if id, ok := given["SESSION_ID"].(int64); ok {
					f.SessionID = id
				}
			case "QUERY_HISTORY_BY_WAREHOUSE":
				f.Warehouse = current
				if w, ok := given["WAREHOUSE_NAME"].(string); ok {
					f.Warehouse = w
				}
			case "QUERY_HISTORY_BY_USER":
				f.User = user
				if u, ok := given["USER_NAME"].(string); ok {
					f.User = u
				}
			}
			return executions(store, f), nil
		})
}

// evaluate asks Postgres for the values of arguments.
func evaluate(ctx context.Context, conn *pgx.Conn, arguments, types map[string]string) (map[string]any, error) {
	values := map[string]any{}
	for key, sql := range arguments {
		to := types[key]
		if to == "" {
			to = "text"
		}
		if to == "bigint" {
			sql = "(" + sql + ")::numeric"
		}
		var v any
		if err := conn.QueryRow(ctx, "SELECT ("+sql+")::"+to).Scan(&v); err != nil {
			return nil, Error(err)
		}
		values[key] = v
	}
	return values, nil
}

// usageRows bounds ACCOUNT_USAGE.QUERY_HISTORY to the latest executions: a query of
// the view copies what it reads to Postgres.
const usageRows = 200_000

// accountUsage writes the views of SNOWFLAKE.ACCOUNT_USAGE that the stand-in has.
func (p *Parser) accountUsage(view string) string {
	if !p.May("IMPORTED PRIVILEGES", DatabaseObject("SNOWFLAKE")) {
		p.Fail(protocol.CompilationError("002003", "02000", "Schema 'SNOWFLAKE.ACCOUNT_USAGE' does not exist or not authorized."))
	}
	store, now := p.Account.Host.History(), p.Account.Host.Now()
	switch view {
	case "QUERY_HISTORY":
		return FromRows(p, "history", executionColumns,
			func(context.Context, *pgx.Conn) (func() (*history.Record, bool), error) {
				return executions(store, history.Filter{Limit: usageRows, Now: now}), nil
			})
	case "AGGREGATE_QUERY_HISTORY":
		return FromRows(p, "aggregate", aggregateColumns,
			func(context.Context, *pgx.Conn) (func() (*history.Aggregate, bool), error) {
				return Each(store.Aggregates(time.Time{}, time.Time{}, now)), nil
			})
	case "WAREHOUSE_METERING_HISTORY":
		return p.metering(nil)
	case "HYBRID_TABLE_USAGE_HISTORY":
		return FromRows(p, "hybrid", hybridColumns,
			func(context.Context, *pgx.Conn) (func() (*usage, bool), error) {
				return Each(hybridUsage(store.Aggregates(time.Time{}, time.Time{}, now))), nil
			})
	}
	p.Fail(protocol.DoesNotExist("Object", "SNOWFLAKE.ACCOUNT_USAGE."+view))
	return ""
}

// creditsPerRequest is the price of a request to a hybrid table in the stand-in:
// a figure of its own, since Snowflake charges by bytes in units of 4 KB.
const creditsPerRequest = 1.0 / 2_000_000

// hybridUsage adds the requests to hybrid tables up by the hour.
func hybridUsage(all []history.Aggregate) []usage {
	hours := map[time.Time]int64{}
	for _, a := range all {
		if a.HybridRequests > 0 {
			hours[a.IntervalStart.Truncate(time.Hour)] += a.HybridRequests
		}
	}
	var out []usage
	for start, n := range hours {
		out = append(out, usage{start: start, requests: n, credits: float64(n) * creditsPerRequest})
	}
	slices.SortFunc(out, func(a, b usage) int { return a.start.Compare(b.start) })
	return out
}

// creditsPerHour are the credits of an hour of one cluster, by size.
var creditsPerHour = map[string]float64{"X-Small": 1, "Small": 2, "Medium": 4, "Large": 8, "X-Large": 16,
	"2X-Large": 32, "3X-Large": 64, "4X-Large": 128, "5X-Large": 256, "6X-Large": 512}

// metering writes WAREHOUSE_METERING_HISTORY: the hours in which a warehouse
// executed something, at the credits of one cluster for the minutes in which it did.
func (p *Parser) metering(arguments map[string]string) string {
	store, now := p.Account.Host.History(), p.Account.Host.Now()
	return FromRows(p, "metering", meteringColumns,
		func(ctx context.Context, conn *pgx.Conn) (func() (*usage, bool), error) {
			given, err := evaluate(ctx, conn, arguments,
				map[string]string{"DATE_RANGE_START": "timestamptz", "DATE_RANGE_END": "timestamptz"})
			if err != nil {
				return nil, err
			}
			from, _ := given["DATE_RANGE_START"].(time.Time)
			to, _ := given["DATE_RANGE_END"].(time.Time)
			only, _ := given["WAREHOUSE_NAME"].(string)
			type minute struct {
				warehouse string
				start     time.Time
			}
			busy := map[minute]string{}
			for _, a := range store.Aggregates(from, to, now) {
				if a.Warehouse != "" && a.Table != warehouse.None.String() && (only == "" || only == a.Warehouse) {
					busy[minute{a.Warehouse, a.IntervalStart}] = a.WarehouseSize
				}
			}
			hours := map[minute]float64{}
			for m, size := range busy {
				hours[minute{m.warehouse, m.start.Truncate(time.Hour)}] += creditsPerHour[size] / 60
			}
			var out []usage
			for m, credits := range hours {
				out = append(out, usage{start: m.start, warehouse: m.warehouse, credits: credits})
			}
			slices.SortFunc(out, func(a, b usage) int {
				if c := a.start.Compare(b.start); c != 0 {
					return c
				}
				return strings.Compare(a.warehouse, b.warehouse)
			})
			return Each(out), nil
		})
}
