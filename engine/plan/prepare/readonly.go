package prepare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// dialect is the adapter's, for reading its SQL.
func (r *resolved) dialect() sqltext.Dialect {
	return sqltext.DialectOf(r.adapter.Info().Manifest.Dialect)
}

// ReadOnly refuses SQL of an adapter that does more than read; empty texts are passed over.
func ReadOnly(dialect string, texts ...string) error {
	for _, text := range texts {
		if why := notReadOnly(text, sqltext.DialectOf(dialect)); text != "" && why != "" {
			return &engine.Error{Code: engine.CodePlugin,
				Message: fmt.Sprintf("A query of the adapter %s; it may only read.", why)}
		}
	}
	return nil
}

// readVerbs may begin a query.
var readVerbs = []string{"SELECT", "WITH", "SHOW", "VALUES", "EXPLAIN", "TABLE"}

// writeWords do not occur in a query that reads, except as names in quotes.
var writeWords = []string{"INSERT", "UPDATE", "DELETE", "MERGE", "INTO", "TRUNCATE", "DROP", "ALTER", "CREATE", "GRANT",
	"REVOKE", "COPY", "CALL", "DO", "EXECUTE",
	"ANALYZE", "ANALYSE", "VACUUM", "LOCK", "LISTEN", "NOTIFY", "BEGIN", "COMMIT", "ROLLBACK"}

// effects are functions that do more than compute a value, by the beginnings of
// their names: they reach files, sessions, locks, settings, sequences, large objects
// and other servers, or run SQL of their own. A read-only transaction forbids few of them.
var effects = []string{
	"pg_read_", "pg_ls_", "pg_stat_file", "pg_file_", "pg_logdir_", "pg_current_logfile", "pg_import_", "lo_", "loread",
	"lowrite", "lo",
	"pg_terminate_", "pg_cancel_", "pg_reload_", "pg_rotate_", "pg_signal_", "pg_log_backend", "pg_promote", "pg_switch_",
	"pg_create_", "pg_drop_",
	"pg_copy_", "pg_backup_", "pg_start_backup", "pg_stop_backup", "pg_wal_replay_", "pg_replication_", "pg_logical_",
	"pg_export_snapshot", "pg_notify",
	"pg_stat_reset", "pg_stat_clear_", "pg_stat_statements_reset", "pg_advisory_", "pg_try_advisory_", "pg_sleep",
	"pg_extension_config_dump", "pg_prewarm",
	"pg_buffercache_", "pg_truncate_", "pg_surgery", "heap_force_", "brin_summarize_", "brin_desummarize_", "gin_clean_",
	"pg_nextoid", "pg_stop_making_",
	"set_config", "setseed", "nextval", "setval", "currtid", "txid_current", "pg_current_xact_id", "binary_upgrade_",
	"dblink", "postgres_fdw_", "query_to_", "table_to_xml", "cursor_to_", "schema_to_xml", "database_to_xml", "xmltable_",
	"crosstab", "connectby", "ts_stat", "ts_rewrite", "exec",
	"treat", // calls the function that a type is named like
	"system$abort", "system$cancel", "system$wait", "system$set", "system$send", "system$pipe_force", "system$task",
	"system$user_task", "system$generate",
	"system$authorize", "system$revoke", "system$register", "system$unregister", "system$convert", "system$drop",
	"system$disable", "system$enable", "system$start", "system$finish",
}

// exactEffects are those of effects that are whole names: other functions begin so, too.
var exactEffects = []string{
	"lo",
	"exec",
	"nextval",
	"setval",
	"setseed",
	"ts_stat",
	"ts_rewrite",
	"set_config",
	"connectby",
	"treat",
}

// effect is a function among the tokens that does more than compute, or "".
func effect(tokens []sqltext.Token) string {
	for i := range tokens {
		name, ok := sqltext.Call(tokens, i)
		if !ok {
			continue
		}
		if name = strings.ToLower(name); slices.ContainsFunc(effects, func(e string) bool {
			return name == e || !slices.Contains(exactEffects, e) && strings.HasPrefix(name, e)
		}) {
			return name
		}
	}
	return ""
}

// notReadOnly says why a text may change something, or "" when it reads. It
// errs towards refusal; the read-only transaction is the second line, and the
// target's own rights are the third.
func notReadOnly(sql string, dialect sqltext.Dialect) string {
	tokens, err := sqltext.Tokens(sql, dialect)
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	list := sqltext.Statements(tokens)
	if len(list) > 1 {
		return "is more than one statement"
	}
	first := slices.IndexFunc(tokens, func(t sqltext.Token) bool { return !t.Is("(") })
	if first < 0 || !slices.Contains(readVerbs, tokens[first].Upper()) {
		return "does not begin with SELECT"
	}
	for i, t := range tokens {
		if slices.Contains(writeWords, t.Upper()) {
			return "contains " + t.Upper()
		}
		// U&"…" and U&'…' spell names and texts with escapes that nothing here reads.
		if sqltext.Escapes(tokens, i) {
			return "spells a name with U&"
		}
	}
	if name := effect(tokens); name != "" {
		return "calls the function " + name + ", which does more than read"
	}
	return ""
}
