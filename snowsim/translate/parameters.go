package translate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// documented is a parameter as SHOW PARAMETERS lists it.
type documented struct{ key, value, kind, description string }

// parameters are the session parameters with Snowflake's defaults, sorted by name. CLIENT_STAGE_ARRAY_BINDING_THRESHOLD
// is the stand-in's.
var parameters = []documented{
	{"ABORT_DETACHED_QUERY", "false", "BOOLEAN", "Abort a query when its session is gone."},
	{"AUTOCOMMIT", "true", "BOOLEAN", "Commit each statement on its own."},
	{"BINARY_INPUT_FORMAT", "HEX", "STRING", "How text becomes BINARY."},
	{"BINARY_OUTPUT_FORMAT", "HEX", "STRING", "How BINARY becomes text."},
	{"CLIENT_SESSION_KEEP_ALIVE", "false", "BOOLEAN", "Keep the session alive without activity."},
	{"CLIENT_STAGE_ARRAY_BINDING_THRESHOLD", "0", "NUMBER", "Bound values above which a driver stages them; 0 is never."},
	{"DATE_INPUT_FORMAT", "AUTO", "STRING", "How text becomes DATE."},
	{"DATE_OUTPUT_FORMAT", "YYYY-MM-DD", "STRING", "How DATE becomes text."},
	{"ERROR_ON_NONDETERMINISTIC_MERGE", "true", "BOOLEAN", "Refuse a MERGE that joins a row several times."},
	{"ERROR_ON_NONDETERMINISTIC_UPDATE", "false", "BOOLEAN", "Refuse an UPDATE that joins a row several times."},
	{"HYBRID_TABLE_LOCK_TIMEOUT", "3600", "NUMBER", "Seconds that a statement waits for a row lock of a hybrid table."},
	{"JSON_INDENT", "2", "NUMBER", "Blanks of each level of a VARIANT that is shown."},
	{"LOCK_TIMEOUT", "43200", "NUMBER", "Seconds that a statement waits for a lock."},
	{"MULTI_STATEMENT_COUNT", "1", "NUMBER", "Statements of a request; 0 is any number."},
	{"QUERY_TAG", "", "STRING", "Text that the history keeps for each statement."},
	{"QUOTED_IDENTIFIERS_IGNORE_CASE", "false", "BOOLEAN", "Store quoted identifiers in upper case."},
	{"READ_LATEST_WRITES", "false", "BOOLEAN", "Read the latest writes of other sessions."},
	{"ROWS_PER_RESULTSET", "0", "NUMBER", "Rows of a result at most; 0 is no limit."},
	{"STATEMENT_QUEUED_TIMEOUT_IN_SECONDS", "0", "NUMBER", "Seconds that a statement stays queued; 0 is no limit."},
	{"STATEMENT_TIMEOUT_IN_SECONDS", "172800", "NUMBER", "Seconds that a statement runs."},
	{"TIMESTAMP_DAY_IS_ALWAYS_24H", "false", "BOOLEAN", "A day has 24 hours where clocks change too."},
	{"TIMESTAMP_INPUT_FORMAT", "AUTO", "STRING", "How text becomes a TIMESTAMP."},
	{"TIMESTAMP_LTZ_OUTPUT_FORMAT", "", "STRING", "How TIMESTAMP_LTZ becomes text; empty is TIMESTAMP_OUTPUT_FORMAT."},
	{"TIMESTAMP_NTZ_OUTPUT_FORMAT", "YYYY-MM-DD HH24:MI:SS.FF3", "STRING", "How TIMESTAMP_NTZ becomes text."},
	{"TIMESTAMP_OUTPUT_FORMAT", "YYYY-MM-DD HH24:MI:SS.FF3 TZHTZM", "STRING", "How a TIMESTAMP becomes text."},
	{"TIMESTAMP_TYPE_MAPPING", "TIMESTAMP_NTZ", "STRING", "What TIMESTAMP means."},
	{"TIMESTAMP_TZ_OUTPUT_FORMAT", "", "STRING", "How TIMESTAMP_TZ becomes text; empty is TIMESTAMP_OUTPUT_FORMAT."},
	{"TIMEZONE", "America/Los_Angeles", "STRING", "Time zone of the session."},
	{"TIME_INPUT_FORMAT", "AUTO", "STRING", "How text becomes TIME."},
	{"TIME_OUTPUT_FORMAT", "HH24:MI:SS", "STRING", "How TIME becomes text."},
	{"TRANSACTION_ABORT_ON_ERROR", "false", "BOOLEAN", "An error ends the transaction."},
	{"TWO_DIGIT_CENTURY_START", "1970", "NUMBER", "The first year that two digits can mean."},
	{"USE_CACHED_RESULT", "true", "BOOLEAN", "Use results of earlier statements."},
	{"WEEK_OF_YEAR_POLICY", "0", "NUMBER", "Which week of a year is the first."},
	{"WEEK_START", "0", "NUMBER", "The first day of a week; 0 is as ISO has it."},
}

// booleans are the session parameters that are TRUE or FALSE.
var booleans = func() map[string]bool {
	all := map[string]bool{}
	for _, one := range parameters {
		if one.kind == "BOOLEAN" {
			all[one.key] = true
		}
	}
	return all
}()

// IsParameter reports whether there is a session parameter of that name, in any case.
func IsParameter(name string) bool {
	return slices.ContainsFunc(parameters, func(one documented) bool { return strings.EqualFold(one.key, name) })
}

// showParameters reads SHOW PARAMETERS [LIKE …] [IN | FOR SESSION | ACCOUNT | WAREHOUSE w].
func (p *parser) showParameters() *Plan {
	pattern, hasLike := "", false
	list := p.sessionParameters
	for p.peek().kind != tokenEnd && !p.isSymbol(";") {
		switch {
		case p.accept("LIKE"):
			pattern, hasLike = p.constant(), true
		case p.accept("IN", "SESSION"), p.accept("FOR", "SESSION"):
		case p.accept("IN", "ACCOUNT"), p.accept("FOR", "ACCOUNT"):
			list = p.accountParameters
		case p.accept("IN", "WAREHOUSE"), p.accept("FOR", "WAREHOUSE"):
			name := p.identifier()
			list = func() [][]any { return p.warehouseParameters(name) }
		default:
			p.unexpected()
		}
	}
	r := &Result{Columns: []protocol.Column{protocol.Text("key"), protocol.Text("value"), protocol.Text("default"),
		protocol.Text("level"), protocol.Text("description"), protocol.Text("type")}}
	for _, row := range list() {
		if key, _ := row[0].(string); !hasLike || like(pattern, key) {
			r.Rows = append(r.Rows, row)
		}
	}
	return p.showPlan(r)
}

func (d documented) row(value, level string) []any {
	return []any{d.key, value, d.value, level, d.description, d.kind}
}

func (p *parser) sessionParameters() (rows [][]any) {
	for _, one := range parameters {
		value, level := one.value, ""
		if set, ok := p.session.Parameters[one.key]; ok {
			if value, level = set, "SESSION"; p.session.Defaults[one.key].Value == set {
				level = p.session.Defaults[one.key].Level
			}
		}
		rows = append(rows, one.row(value, level))
	}
	return rows
}

func (p *parser) accountParameters() (rows [][]any) {
	for _, one := range parameters {
		value, level := one.value, ""
		if set := p.session.Defaults[one.key]; set.Level == "ACCOUNT" {
			value, level = set.Value, set.Level
		}
		rows = append(rows, one.row(value, level))
	}
	return rows
}

// warehouseParameters are those of a warehouse; FALLBACK_WAREHOUSE is an interactive one's, and SHOW WAREHOUSES does
// not tell it.
func (p *parser) warehouseParameters(name string) [][]any {
	w, found := p.account.host.Warehouses().Get(name)
	if !found || !visible(p.account, p.session, w) {
		p.fail(protocol.CompilationError("002003", "02000", "Warehouse '%s' does not exist or not authorized.",
			displayName(name)))
	}
	level := func(value, otherwise string) string {
		if value == otherwise {
			return ""
		}
		return "WAREHOUSE"
	}
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
	var rows [][]any
	for _, one := range []struct {
		documented
		now string
	}{
		{documented{"FALLBACK_WAREHOUSE", "", "STRING", "Executes again what takes too long here."}, w.Fallback},
		{documented{"MAX_CONCURRENCY_LEVEL", "8", "NUMBER", "Statements that a cluster executes at a time."},
			strconv.Itoa(w.MaxConcurrency)},
		{documented{"STATEMENT_QUEUED_TIMEOUT_IN_SECONDS", "0", "NUMBER", "Seconds that a statement stays queued."},
			seconds(w.QueuedTimeout)},
		{documented{"STATEMENT_TIMEOUT_IN_SECONDS", "172800", "NUMBER", "Seconds that a statement runs."},
			seconds(w.StatementTimeout)},
	} {
		if one.key == "FALLBACK_WAREHOUSE" && w.Type != warehouse.TypeInteractive {
			continue
		}
		rows = append(rows, one.row(one.now, level(one.now, one.value)))
	}
	return rows
}
