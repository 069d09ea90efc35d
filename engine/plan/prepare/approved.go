package prepare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// sessionSettings are what an adapter may set for a session: how values are written, and
// how statements are planned and bounded. Who the session is, which schema it looks
// in, and what it may write are not among them.
var sessionSettings = []string{
	"time zone", "timezone", "datestyle", "intervalstyle", "extra_float_digits", "bytea_output", "client_encoding",
	"client_min_messages", "application_name",
	"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout", "tcp_user_timeout",
	"default_transaction_isolation", "default_transaction_deferrable", "default_statistics_target", "synchronous_commit",
	"commit_delay", "commit_siblings", "deadlock_timeout",
	"work_mem", "hash_mem_multiplier", "maintenance_work_mem", "temp_buffers", "effective_cache_size",
	"effective_io_concurrency", "max_parallel_workers", "max_parallel_workers_per_gather",
	"parallel_setup_cost", "parallel_tuple_cost", "parallel_leader_participation", "min_parallel_table_scan_size",
	"min_parallel_index_scan_size",
	"seq_page_cost", "random_page_cost", "cpu_tuple_cost", "cpu_index_tuple_cost", "cpu_operator_cost",
	"cursor_tuple_fraction", "from_collapse_limit", "join_collapse_limit",
	"geqo", "geqo_threshold", "jit", "jit_above_cost", "jit_inline_above_cost", "jit_optimize_above_cost",
	"plan_cache_mode", "constraint_exclusion", "recursive_worktable_factor",
	"timestamp_output_format", "timestamp_type_mapping", "query_tag", "use_cached_result", "statement_timeout_in_seconds",
	"statement_queued_timeout_in_seconds", "lock_timeout_in_seconds", "week_start",
	"transaction_default_isolation_level", "json_indent", "binary_output_format", "binary_input_format",
	"quoted_identifiers_ignore_case",
}

// setsSession says why a text may not run on every connect, or "".
func setsSession(sql string, dialect sqltext.Dialect) string {
	tokens, err := sqltext.Tokens(sql, dialect)
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	list := sqltext.Statements(tokens)
	if len(list) != 1 {
		return "is not one statement"
	}
	words := list[0]
	word := func(i int) string {
		if i < len(words) {
			return words[i].Upper()
		}
		return ""
	}
	at := 1
	switch {
	case word(0) == "ALTER" && word(1) == "SESSION" && word(2) == "SET":
		at = 3
	case word(0) != "SET":
		return "does not begin with SET"
	case word(1) == "SESSION" && word(2) == "CHARACTERISTICS":
		if len(words) < 8 || word(3) != "AS" || word(4) != "TRANSACTION" || word(5) != "ISOLATION" || word(6) != "LEVEL" ||
			slices.ContainsFunc(words[7:], func(t sqltext.Token) bool {
				return t.Kind != sqltext.Word || t.Upper() == "WRITE" || t.Upper() == "ONLY"
			}) {
			return "sets more of the session's transactions than their isolation level"
		}
		return ""
	case word(1) == "SESSION":
		at = 2
	}
	name := strings.ToLower(word(at))
	if name == "time" && word(at+1) == "ZONE" {
		name = "time zone"
	}
	if !slices.Contains(sessionSettings, name) && !strings.HasPrefix(name, "enable_") {
		return fmt.Sprintf("sets %q, which is none of the settings that an adapter may set", name)
	}
	// A value is constants and words: what computes one could do more.
	if slices.ContainsFunc(words, func(t sqltext.Token) bool { return t.Is("(") }) {
		return "computes a value"
	}
	return ""
}

// settles says why a text may not be what an adapter has constraints checked with, or "".
func (r *resolved) settles(sends plugin.Sends, sql string, tables []string) string {
	if sql == "" {
		return ""
	}
	why := checksConstraints(sql, r.dialect())
	if why == "" && !plugin.Allows(sends.Session, sql, r.adapter.Info().Manifest.Dialect, tables) {
		why = "its manifest does not declare"
	}
	return why
}

// checksConstraints says why a text may not be what has constraints checked, or "".
func checksConstraints(sql string, dialect sqltext.Dialect) string {
	tokens, err := sqltext.Tokens(sql, dialect)
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	var list []string
	for _, t := range tokens {
		list = append(list, t.Upper())
	}
	if strings.Join(list, " ") != "SET CONSTRAINTS ALL IMMEDIATE" {
		return "does more than have constraints checked"
	}
	return ""
}

// approved refuses an answer with SQL that the adapter did not declare: what was
// approved when it was enabled is all that it sends. The fixed rules (queries read,
// sessions are set up by listed settings) hold beside the patterns.
func (r *resolved) approved(req plugin.AdapterRequest, answer *plugin.AdapterAnswer) error {
	info := r.adapter.Info()
	sends := info.Manifest.Patterns()
	refuse := func(sql, why string) error {
		return &engine.Error{Code: engine.CodePlugin,
			Message: fmt.Sprintf("The adapter %s answered %s with SQL that %s: %s.", info.Name, req.Op, why,
				readable([]string{fmt.Sprintf("%.300q", sql)})[0]),
			Hint: "its manifest declares what it may send (loadstone plugin inspect shows it); the plugin's author has to " +
				"correct it"}
	}
	const undeclared = "its manifest does not declare"
	tables := append([]string{req.TableName}, r.tableNames...)
	dialect := info.Manifest.Dialect
	queries := answer.Queries
	if answer.Keys != nil {
		queries = append(slices.Clone(queries), plugin.Query{SQL: answer.Keys.SQL})
	}
	var reads []string
	for _, q := range queries {
		reads = append(reads, q.SQL)
	}
	if answer.Observe != nil {
		reads = append(reads, answer.Observe.Texts()...)
	}
	for _, sql := range reads {
		if why := notReadOnly(sql, r.dialect()); why != "" {
			return refuse(sql, "does more than read (it "+why+"), and an adapter may only read")
		}
		if !plugin.Allows(sends.Query, sql, dialect, tables) {
			return refuse(sql, undeclared)
		}
	}
	var pages []string
	if e := answer.Enrich; e != nil {
		pages = []string{e.Page, e.Aggregate}
	}
	for _, sql := range pages {
		if sql != "" && !plugin.Allows(sends.Query, sql, dialect, tables) {
			return refuse(sql, undeclared)
		}
	}
	for _, sql := range answer.Session {
		if why := setsSession(sql, r.dialect()); why != "" {
			return refuse(sql, why)
		}
		if !plugin.Allows(sends.Session, sql, dialect, tables) {
			return refuse(sql, undeclared)
		}
	}
	if why := r.settles(sends, answer.Settle, tables); why != "" {
		return refuse(answer.Settle, why)
	}
	ddl := slices.Concat(answer.DDL, answer.AfterLoad, answer.Swap)
	if answer.Load != nil {
		for _, g := range answer.Load.Generate {
			ddl = append(ddl, g.SQL)
		}
	}
	for _, sql := range ddl {
		if !plugin.Allows(sends.DDL, sql, dialect, tables) {
			return refuse(sql, undeclared)
		}
	}
	return nil
}

// checkDeclaredSQL refuses statements of the workload that the adapter wrote otherwise than its
// manifest declares. What the workload brought goes through the adapter unchanged, with
// the tables' names put in.
func checkDeclaredSQL(
	adapter plugin.Info,
	wanted []plugin.Statement,
	list []engine.Statement,
	tables []engine.Table,
) error {
	patterns, dialect := adapter.Manifest.Patterns().Statements, adapter.Manifest.Dialect
	var names []string
	for _, t := range tables {
		names = append(names, t.PhysicalName)
	}
	for i, s := range list {
		own, _ := ownSQL(adapter, wanted[i], tables)
		if own != "" && own == s.SQL {
			continue
		}
		// The rest of a text that is the workload's is not the adapter's to change.
		if own == "" && plugin.Allows(patterns, s.SQL, dialect, names) {
			continue
		}
		why := "that its manifest does not declare"
		if own != "" {
			why = "that is not what the workload brought"
		}
		return &engine.Error{Code: engine.CodePlugin,
			Message: fmt.Sprintf("The adapter %s wrote SQL for the statement %s %s: %s.", adapter.Name, s.ID, why,
				readable([]string{fmt.Sprintf("%.300q", s.SQL)})[0]),
			Hint: "its manifest declares what it may send (loadstone plugin inspect shows it); the plugin's author has to " +
				"correct it"}
	}
	return nil
}
