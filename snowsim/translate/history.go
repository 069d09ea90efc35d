package translate

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/history"
	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// executionColumns are those of QUERY_HISTORY.
var executionColumns = []rowColumn[history.Record]{
	{"QUERY_ID", "text", func(r *history.Record) any { return queryID(r.QueryID) }},
	{"QUERY_TEXT", "text", func(r *history.Record) any { return r.Text }},
	{"DATABASE_NAME", "text", func(r *history.Record) any { return nullIfEmpty(r.Database) }},
	{"SCHEMA_NAME", "text", func(r *history.Record) any { return nullIfEmpty(r.Schema) }},
	{"QUERY_TYPE", "text", func(r *history.Record) any { return r.QueryType }},
	{"SESSION_ID", "numeric(38,0)", func(r *history.Record) any { return r.SessionID }},
	{"USER_NAME", "text", func(r *history.Record) any { return r.User }},
	{"ROLE_NAME", "text", func(r *history.Record) any { return nullIfEmpty(r.Role) }},
	{"WAREHOUSE_NAME", "text", func(r *history.Record) any { return nullIfEmpty(r.Warehouse) }},
	{"WAREHOUSE_SIZE", "text", func(r *history.Record) any { return nullIfEmpty(r.WarehouseSize) }},
	{"WAREHOUSE_TYPE", "text", func(r *history.Record) any { return nullIfEmpty(r.WarehouseType) }},
	{"CLUSTER_NUMBER", "numeric(38,0)", func(r *history.Record) any { return positive(int64(r.Cluster)) }},
	{"QUERY_TAG", "text", func(r *history.Record) any { return r.Tag }},
	{"EXECUTION_STATUS", "text", func(r *history.Record) any {
		if r.ErrorCode == "" {
			return "SUCCESS"
		}
		return "FAILED"
	}},
	{"ERROR_CODE", "text", func(r *history.Record) any { return nullIfEmpty(r.ErrorCode) }},
	{"ERROR_MESSAGE", "text", func(r *history.Record) any { return nullIfEmpty(r.ErrorMessage) }},
	{"START_TIME", "timestamptz(3)", func(r *history.Record) any { return r.Start }},
	{"END_TIME", "timestamptz(3)", func(r *history.Record) any { return r.End }},
	{"TOTAL_ELAPSED_TIME", "numeric(38,0)", func(r *history.Record) any { return r.Total().Milliseconds() }},
	{"BYTES_SCANNED", "numeric(38,0)", func(r *history.Record) any { return r.BytesScanned }},
	{"ROWS_PRODUCED", "numeric(38,0)", func(r *history.Record) any { return r.RowsProduced }},
	{"COMPILATION_TIME", "numeric(38,0)", func(r *history.Record) any { return r.Compilation.Milliseconds() }},
	{"EXECUTION_TIME", "numeric(38,0)", func(r *history.Record) any { return r.Execution.Milliseconds() }},
	{"QUEUED_PROVISIONING_TIME", "numeric(38,0)",
		func(r *history.Record) any { return r.QueuedProvisioning.Milliseconds() }},
	{"QUEUED_REPAIR_TIME", "numeric(38,0)", func(*history.Record) any { return int64(0) }},
	{"QUEUED_OVERLOAD_TIME", "numeric(38,0)", func(r *history.Record) any { return r.QueuedOverload.Milliseconds() }},
	{"TRANSACTION_BLOCKED_TIME", "numeric(38,0)", func(*history.Record) any { return int64(0) }},
}

// aggregateColumns are those of AGGREGATE_QUERY_HISTORY.
var aggregateColumns = []rowColumn[history.Aggregate]{
	{"CALLS", "numeric(38,0)", func(a *history.Aggregate) any { return a.Calls }},
	{"INTERVAL_START_TIME", "timestamptz(3)", func(a *history.Aggregate) any { return a.IntervalStart }},
	{"INTERVAL_END_TIME", "timestamptz(3)", func(a *history.Aggregate) any { return a.IntervalEnd }},
	{"QUERY_TEXT", "text", func(a *history.Aggregate) any { return a.Text }},
	{"QUERY_TYPE", "text", func(a *history.Aggregate) any { return a.QueryType }},
	{"WAREHOUSE_NAME", "text", func(a *history.Aggregate) any { return nullIfEmpty(a.Warehouse) }},
	{"QUERY_TAG", "text", func(a *history.Aggregate) any { return a.Tag }},
	{"TOTAL_ELAPSED_TIME", "jsonb", func(a *history.Aggregate) any { return distribution(a.Total) }},
	{"COMPILATION_TIME", "jsonb", func(a *history.Aggregate) any { return distribution(a.Compilation) }},
	{"EXECUTION_TIME", "jsonb", func(a *history.Aggregate) any { return distribution(a.Execution) }},
	{"QUEUED_OVERLOAD_TIME", "jsonb", func(a *history.Aggregate) any { return distribution(a.QueuedOverload) }},
	{"HYBRID_TABLE_REQUESTS_THROTTLED_COUNT", "numeric(38,0)", func(a *history.Aggregate) any { return a.Throttled }},
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

func distribution(d history.Distribution) any {
	b, err := json.Marshal(map[string]float64{"sum": d.Sum, "avg": d.Avg, "min": d.Min, "max": d.Max, "median": d.Median,
		"p90": d.P90, "p99": d.P99, "p99.9": d.P999, "stddev": d.StdDev})
	if err != nil {
		return "null" // NaN and infinity have no JSON
	}
	return string(b)
}

// historyFunctions are the table functions of the history, with the argument that is theirs alone.
var historyFunctions = map[string]string{"QUERY_HISTORY": "", "QUERY_HISTORY_BY_USER": "USER_NAME",
	"QUERY_HISTORY_BY_WAREHOUSE": "WAREHOUSE_NAME", "QUERY_HISTORY_BY_SESSION": "SESSION_ID"}

// historyFunction reads TABLE([db.]INFORMATION_SCHEMA.QUERY_HISTORY…(…)), which belongs to a database: to the current
// one unless another is named.
func (p *parser) historyFunction() string {
	parts := []string{p.anyIdentifier()}
	for p.acceptSymbol(".") {
		parts = append(parts, p.anyIdentifier())
	}
	function, full := parts[len(parts)-1], strings.Join(parts, ".")
	if len(parts) > 1 && parts[len(parts)-2] != "INFORMATION_SCHEMA" {
		p.fail(protocol.CompilationError("002141", "42601", "Unknown user-defined table function %s", full))
	}
	own, known := historyFunctions[function]
	switch {
	case function == "WAREHOUSE_METERING_HISTORY":
		p.fail(protocol.NotSimulated("%s", function))
	case !known:
		p.fail(protocol.CompilationError("002141", "42601", "Unknown table function %s", function))
	}
	database := p.session.Database
	if len(parts) > 2 {
		database = parts[len(parts)-3]
	}
	if exists, err := p.account.tables.hasSchema(p.ctx, database, ""); err != nil {
		p.fail(err)
	} else if !exists && database != "SNOWFLAKE" {
		p.fail(protocol.CompilationError("002004", "02000", "Table function '%s' does not exist or not authorized.", full))
	}
	arguments := map[string]string{}
	outer := p.inline
	p.inline = true // arguments are evaluated before the statement runs
	p.inParentheses(func() {
		for !p.isSymbol(")") {
			key := p.anyIdentifier()
			if key == "" || key != own && !slices.Contains([]string{"END_TIME_RANGE_START", "END_TIME_RANGE_END",
				"RESULT_LIMIT"}, key) {
				p.fail(protocol.CompilationError("001018", "22023", "invalid argument '%s' for function %s", key, function))
			}
			p.expectSymbol("=>")
			arguments[key] = p.sql()
			if !p.acceptSymbol(",") {
				return
			}
		}
	})
	p.inline = outer
	store, now, session, account := p.account.host.History(), p.account.host.Now(), p.session, p.account
	return historyTable(p, "history", executionColumns,
		func(ctx context.Context, conn *pgx.Conn) ([]history.Record, error) {
			f, err := filter(ctx, conn, arguments, now)
			if err != nil {
				return nil, err
			}
			switch function {
			case "QUERY_HISTORY_BY_USER":
				f.User = cmp.Or(f.User, session.User)
			case "QUERY_HISTORY_BY_WAREHOUSE":
				f.Warehouse = cmp.Or(f.Warehouse, session.Warehouse)
			case "QUERY_HISTORY_BY_SESSION":
				f.Session = cmp.Or(f.Session, session.ID)
			}
			f.Visible = account.seesHistory(session)
			return store.Query(f), nil
		})
}

// seesHistory reports whose executions a session may see: its own user's, and those on warehouses that one of its roles
// monitors or operates.
func (a *Account) seesHistory(s *Session) func(user, warehouse string) bool {
	known := map[string]bool{}
	return func(user, warehouse string) bool {
		if user == s.User {
			return true
		}
		seen, asked := known[warehouse]
		if !asked && warehouse != "" {
			o := warehouseObject(warehouse)
			w, _ := a.host.Warehouses().Get(warehouse)
			o.owner = w.Owner
			seen = a.hasPrivilege(s, "MONITOR", o) || a.hasPrivilege(s, "OPERATE", o)
			known[warehouse] = seen
		}
		return seen
	}
}

// filter evaluates the arguments of QUERY_HISTORY.
func filter(ctx context.Context, conn *pgx.Conn, arguments map[string]string, now time.Time) (history.Filter, error) {
	f := history.Filter{Limit: 100, Now: now}
	for key, sql := range arguments {
		var err error
		switch key {
		case "END_TIME_RANGE_START":
			err = conn.QueryRow(ctx, "SELECT ("+sql+")::timestamptz").Scan(&f.From)
		case "END_TIME_RANGE_END":
			err = conn.QueryRow(ctx, "SELECT ("+sql+")::timestamptz").Scan(&f.To)
		case "RESULT_LIMIT":
			err = conn.QueryRow(ctx, "SELECT (("+sql+")::numeric)::bigint").Scan(&f.Limit)
		case "SESSION_ID":
			err = conn.QueryRow(ctx, "SELECT (("+sql+")::numeric)::bigint").Scan(&f.Session)
		case "USER_NAME":
			err = conn.QueryRow(ctx, "SELECT upper(("+sql+")::text)").Scan(&f.User)
		case "WAREHOUSE_NAME":
			err = conn.QueryRow(ctx, "SELECT upper(("+sql+")::text)").Scan(&f.Warehouse)
		}
		if err != nil {
			return f, Error(err)
		}
	}
	if f.Limit < 1 || f.Limit > 10000 {
		return f, protocol.CompilationError("001018", "22023",
			"argument 'RESULT_LIMIT' to table function QUERY_HISTORY needs to be between 1 and 10000, got %d", f.Limit)
	}
	if !f.From.IsZero() && now.Sub(f.From) > 7*24*time.Hour+time.Minute {
		return f, protocol.CompilationError("001018", "22023",
			"cannot retrieve data from more than 7 days ago for table function QUERY_HISTORY")
	}
	return f, nil
}

// accountUsage writes AGGREGATE_QUERY_HISTORY, the only view of SNOWFLAKE.ACCOUNT_USAGE here.
func (p *parser) accountUsage(view string) string {
	if !p.hasPrivilege("IMPORTED PRIVILEGES", databaseObject("SNOWFLAKE")) {
		p.fail(protocol.CompilationError("002003", "02000",
			"Schema 'SNOWFLAKE.ACCOUNT_USAGE' does not exist or not authorized."))
	}
	if view != "AGGREGATE_QUERY_HISTORY" {
		p.fail(protocol.NotSimulated("SNOWFLAKE.ACCOUNT_USAGE.%s", view))
	}
	store, now := p.account.host.History(), p.account.host.Now()
	return historyTable(p, "aggregate", aggregateColumns,
		func(context.Context, *pgx.Conn) ([]history.Aggregate, error) { return store.Aggregates(now), nil })
}

// rowColumn is a column of a history, with its Postgres type and its value
// of an execution or an interval.
type rowColumn[T any] struct {
	name, postgres string
	value          func(r *T) any
}

// usedColumns returns the columns of a history that the statement names: it reads the
// tokens, since the list of a SELECT comes before its FROM.
func usedColumns[T any](p *parser, all []rowColumn[T]) []rowColumn[T] {
	words := map[string]bool{}
	star := false
	for i, t := range p.tokens {
		if t.kind == tokenWord || t.kind == tokenQuoted {
			words[t.text] = true
		}
		if t.kind == tokenSymbol && t.text == "*" && i > 0 {
			before := p.tokens[i-1]
			star = star || before.kind == tokenSymbol && (before.text == "," || before.text == ".") ||
				isOneOf(before, "SELECT", "DISTINCT", "ALL")
		}
	}
	if star {
		return all
	}
	var used []rowColumn[T]
	for _, c := range all {
		if words[c.name] {
			used = append(used, c)
		}
	}
	if len(used) == 0 {
		used = all[:1]
	}
	return used
}

// historyTable fills a temporary table before the statement runs and returns its name.
func historyTable[T any](p *parser, what string, all []rowColumn[T],
	rows func(ctx context.Context, conn *pgx.Conn) ([]T, error)) string {
	p.volatile = true
	used := usedColumns(p, all)
	table := p.uniqueName(what)
	definitions, names := make([]string, len(used)), make([]string, len(used))
	for i, c := range used {
		definitions[i], names[i] = quote(c.name)+" "+c.postgres, c.name
	}
	p.before = append(p.before, func(ctx context.Context, conn *pgx.Conn) error {
		made, err := rows(ctx, conn)
		if err != nil {
			return err
		}
		if err := execAll(ctx, conn, "CREATE TEMPORARY TABLE "+quote(table)+" ("+
			strings.Join(definitions, ", ")+
			") ON COMMIT DROP"); err != nil {
			return err
		}
		_, err = conn.CopyFrom(
			ctx,
			pgx.Identifier{"pg_temp", table},
			names,
			pgx.CopyFromSlice(len(made), func(row int) ([]any, error) {
				values := make([]any, len(used))
				for i, c := range used {
					values[i] = c.value(&made[row])
				}
				return values, nil
			}),
		)
		return err
	})
	return "pg_temp." + quote(table)
}

// nullIfEmpty is a text, nil when it is empty.
func nullIfEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}
