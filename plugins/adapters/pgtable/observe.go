package pgtable

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// What an observation reads besides, and calls.
const (
	observedViews = "pg_catalog.pg_stat_activity pg_catalog.pg_stat_database pg_catalog.pg_stat_wal " +
		"pg_catalog.pg_stat_bgwriter pg_catalog.pg_stat_checkpointer pg_catalog.pg_stat_user_tables " +
		"pg_catalog.pg_stat_progress_vacuum pg_catalog.pg_stat_replication pg_catalog.pg_extension pg_catalog.pg_database " +
		"pg_catalog.pg_inherits pg_catalog.pg_namespace *.pg_stat_statements"
	observedFunctions = "pg_catalog.pg_blocking_pids pg_catalog.pg_backend_pid pg_catalog.pg_has_role " +
		"pg_catalog.pg_is_in_recovery pg_catalog.pg_postmaster_start_time pg_catalog.pg_wal_lsn_diff " +
		"pg_catalog.pg_current_wal_lsn pg_catalog.to_regclass pg_catalog.current_setting pg_catalog.current_database " +
		"pg_catalog.array_to_string pg_catalog.clock_timestamp pg_catalog.statement_timestamp pg_catalog.now " +
		"pg_catalog.substr pg_catalog.to_regrole count max sum extract coalesce quote_ident"
)

// maxObservedTables bounds the tables whose statistics are read.
const maxObservedTables = 30

// serverQuery asks what there is to observe, and what the role may see of it.
var serverQuery = sdk.Query{
	ID: "server",
	SQL: `SELECT pg_catalog.current_setting('server_version_num'), pg_catalog.current_setting('server_version'),
 pg_catalog.pg_is_in_recovery()::text, pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')::text,
 pg_catalog.current_setting('max_connections'), '', current_user::text,
 coalesce((SELECT quote_ident(n.nspname) FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
  WHERE e.extname = 'pg_stat_statements'), ''), pg_catalog.current_setting('track_activities')`,
}

// activity is one row for each session that does something, and one for those of each client that do nothing. Of more
// than 1 500 those of the run come first, and those that hold or wait for locks: an answer has 4 MiB at most.
const activity = `SELECT a.pid::text AS session,
 CASE WHEN a.backend_type <> 'client backend' THEN 'service' WHEN a.state IN ('active', 'fastpath function call') THEN 'active'
  ELSE 'in_transaction' END AS state,
 CASE WHEN a.wait_event_type IS NULL THEN 'cpu' WHEN a.wait_event_type = 'Lock' THEN 'lock'
  WHEN a.wait_event = 'SyncRep' THEN 'replica'
  WHEN a.wait_event IN ('WALSync', 'WALWrite', 'WalSync', 'WalWrite', 'WALInsert', 'WALBufMapping', 'WALInitSync', 'WALInitWrite',
   'CommitDelay') THEN 'commit'
  WHEN a.wait_event LIKE 'BufFile%' THEN 'spill'
  WHEN a.wait_event_type = 'IO' AND (a.wait_event LIKE '%Read' OR a.wait_event LIKE '%Prefetch' OR a.wait_event LIKE 'Aio%') THEN 'read'
  WHEN a.wait_event_type = 'IO' THEN 'write' WHEN a.wait_event_type IN ('LWLock', 'BufferPin') THEN 'latch'
  WHEN a.wait_event_type = 'Client' THEN 'client' ELSE 'other' END AS class,
 coalesce(a.wait_event, '') AS event,
 CASE WHEN a.wait_event_type <> 'Lock' THEN '' WHEN a.wait_event IN ('tuple', 'transactionid') THEN 'row'
  WHEN a.wait_event = 'relation' THEN 'table' ELSE '' END AS scope,
 pg_catalog.substr(coalesce(a.query, ''), 1, 400) AS text,
 (a.state = 'active' AND a.query ~* '^\s*(alter|create|drop|truncate|lock|reindex|cluster|refresh|vacuum\s*\(?\s*full)\y') AS alters,
 coalesce(a.application_name, '') AS application, coalesce(a.usename::text, '') AS user_name,
 CASE WHEN a.wait_event_type = 'Lock' THEN pg_catalog.array_to_string(pg_catalog.pg_blocking_pids(a.pid), ',') ELSE '' END AS blocked_by,
 coalesce(extract(epoch FROM pg_catalog.now() - a.xact_start), 0)::float8 AS transaction_seconds, 1 AS sessions,
 (extract(epoch FROM pg_catalog.clock_timestamp() - pg_catalog.statement_timestamp()) * 1000)::float8 AS took_ms
FROM (SELECT * FROM pg_catalog.pg_stat_activity b WHERE b.pid <> pg_catalog.pg_backend_pid()
  AND (b.backend_type = 'client backend' AND b.state <> 'idle' OR b.backend_type IN ('autovacuum worker', 'parallel worker'))
  ORDER BY (b.application_name ~ '(^loadstone| [0-9a-f]{8}$)') DESC, (b.state <> 'active') DESC, (b.wait_event_type = 'Lock') DESC
  LIMIT 1500) a
UNION ALL SELECT '', 'idle', 'other', '', '', '', false, coalesce(a.application_name, ''), '', '', 0, count(*),
 (extract(epoch FROM pg_catalog.clock_timestamp() - pg_catalog.statement_timestamp()) * 1000)::float8
FROM pg_catalog.pg_stat_activity a WHERE a.backend_type = 'client backend' AND a.state = 'idle' GROUP BY a.application_name`

// observe says how the host reads what the server does.
func observe(req *jsondoc.Value, w *jsondoc.Writer) error {
	said := sdk.ResultOf(req, serverQuery.ID)
	if !said.Asked {
		sdk.Ask(w, serverQuery)
		return nil
	}
	p := sdk.Observation{}
	if said.Err != "" || said.Rows.Len() == 0 {
		p.Skip = "The server does not say what it is: " + said.Err
		p.Write(w)
		return nil
	}
	row := said.Rows.At(0)
	version, _ := strconv.Atoi(row.At(0).Str())
	standby, seen := isTrue(row.At(2)), isTrue(row.At(3))
	user, statements := row.At(6).Str(), row.At(7).Str()
	p.Activity = activity
	p.Facts = [][2]string{{"version", row.At(1).Str()}, {"max_connections", row.At(4).Str()},
		{"standby", strconv.FormatBool(standby)}, {"others_seen", strconv.FormatBool(seen)}}
	if !seen {
		p.Missing = append(p.Missing, "What other users' sessions do is not shown to the user "+user+
			", so a lock that one of them holds has no name. GRANT pg_read_all_stats TO "+quoted(user)+" shows it.")
	}
	if row.At(8).Str() == "off" {
		p.Missing = append(p.Missing, "track_activities is off, so that the server does not say what sessions do.")
	}
	if statements == "" {
		p.Missing = append(p.Missing, "The extension pg_stat_statements is not installed. It would tell the time of "+
			"compiling statements (JIT).")
	}
	p.Counters = counters(version, standby, statements, observedTables(req))
	p.Advice = advice()
	p.Write(w)
	return nil
}

// observedTables are the run's tables as SQL literals of their quoted names.
func observedTables(req *jsondoc.Value) []string {
	var list []string
	tables := req.Get("tables")
	for i := 0; i < tables.Len() && len(list) < maxObservedTables; i++ {
		if name := tables.At(i).Get("physical_name").Str(); name != "" {
			list = append(list, literal(name))
		}
	}
	return list
}

// values are the statement of counters, name by name, each of the same rows.
func values(object, from string, pairs ...string) string {
	var list []string
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(
			list,
			"SELECT '"+pairs[i]+"' AS name, "+object+" AS object, ("+pairs[i+1]+")::float8 AS value FROM "+from,
		)
	}
	return strings.Join(list, " UNION ALL ")
}

// server is the object of counters of the whole server.
const server = "''"

// counters are the statements that numbers are read with, by the server's version.
func counters(version int, standby bool, statements string, tables []string) []sdk.ObservedCounter {
	database := []string{"commits", "d.xact_commit", "rollbacks", "d.xact_rollback", "blocks_read", "d.blks_read",
		"blocks_hit", "d.blks_hit", "temp_bytes", "d.temp_bytes", "deadlocks", "d.deadlocks",
		"statistics_reset", "coalesce(extract(epoch FROM d.stats_reset), 0)",
		"server_started", "extract(epoch FROM pg_catalog.pg_postmaster_start_time())"}
	if version >= 140000 {
		database = append(database, "sessions_opened", "d.sessions")
	}
	// What is asked once a second is one statement: its way to the server and back costs more than it.
	second := []sdk.ObservedCounter{{ID: "database", SQL: values(server,
		"pg_catalog.pg_stat_database d WHERE d.datname = pg_catalog.current_database()", database...)}}
	list := []sdk.ObservedCounter{
		{ID: "sessions", EveryMs: 5000, SQL: values(server,
			"pg_catalog.pg_stat_activity a WHERE a.backend_type = 'client backend' OR a.backend_type IS NULL",
			"connections", "count(*)",
			"oldest_transaction_seconds", "coalesce(max(extract(epoch FROM pg_catalog.now() - a.xact_start)), 0)")},
	}
	if version >= 140000 {
		second = append(second, sdk.ObservedCounter{ID: "log", SQL: values(server, "pg_catalog.pg_stat_wal w",
			"log_bytes", "w.wal_bytes", "log_page_images", "w.wal_fpi")})
	}
	checkpoints := values(server, "pg_catalog.pg_stat_bgwriter c", "checkpoints", "c.checkpoints_timed",
		"checkpoints_requested", "c.checkpoints_req")
	if version >= 170000 {
		checkpoints = values(server, "pg_catalog.pg_stat_checkpointer c", "checkpoints", "c.num_timed",
			"checkpoints_requested", "c.num_requested")
	}
	second = append(second, sdk.ObservedCounter{ID: "checkpoints", SQL: checkpoints})
	if len(tables) > 0 {
		var in []string
		for _, t := range tables {
			in = append(in, "pg_catalog.to_regclass("+t+")")
		}
		of := " IN (" + strings.Join(in, ", ") + ")"
		where := " WHERE r.relid" + of + " OR r.relid IN (SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent" + of + ")"
		const name = "quote_ident(r.schemaname) || '.' || quote_ident(r.relname)"
		second = append(second, sdk.ObservedCounter{ID: "tables", SQL: values(name,
			"pg_catalog.pg_stat_user_tables r"+where, "table_scans", "r.seq_scan",
			"table_scan_rows", "r.seq_tup_read", "table_dead_rows", "r.n_dead_tup", "table_live_rows", "r.n_live_tup",
			"table_vacuums", "r.vacuum_count + r.autovacuum_count")})
		list = append(list, sdk.ObservedCounter{ID: "vacuum", EveryMs: 2000, SQL: values(name,
			"pg_catalog.pg_stat_user_tables r JOIN pg_catalog.pg_stat_progress_vacuum p ON p.relid = r.relid"+where,
			"vacuuming", "1")})
	}
	var all []string
	for _, c := range second {
		all = append(all, c.SQL)
	}
	list = append(list, sdk.ObservedCounter{ID: "second", SQL: strings.Join(all, " UNION ALL "), Parts: second})
	if !standby {
		list = append(list, sdk.ObservedCounter{ID: "replicas", EveryMs: 5000, SQL: values("coalesce(s.application_name, '')",
			"pg_catalog.pg_stat_replication s", "replica_lag_bytes",
			"coalesce(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), s.replay_lsn), 0)")})
	}
	if statements != "" && version >= 150000 {
		list = append(
			list,
			sdk.ObservedCounter{ID: "jit", EveryMs: 5000, SQL: values(
				server,
				statements+".pg_stat_statements s JOIN pg_catalog.pg_database b ON b.oid = s.dbid"+
					" WHERE b.datname = pg_catalog.current_database() AND s.userid IN (pg_catalog.to_regrole(quote_ident(session_user)),"+
					" pg_catalog.to_regrole(quote_ident(current_user)))",
				"jit_ms",
				"coalesce(sum(s.jit_generation_time + s.jit_inlining_time + s.jit_optimization_time + s.jit_emission_time), 0)",
			)},
		)
	}
	return list
}

// advice is what to try on Postgres, by the rule of a finding.
func advice() [][2]string {
	return [][2]string{
		{
			"idle_in_transaction",
			"SELECT pg_terminate_backend(…) ends the session; idle_in_transaction_session_timeout keeps it from happening again.",
		},
		{
			"hot_row",
			"Spread the writes over more rows, shorten the transactions, or update the contended row last in each. SKIP LOCKED helps queues.",
		},
		{
			"ddl_queue",
			"Set lock_timeout for such changes and repeat them; CREATE INDEX CONCURRENTLY and ADD CONSTRAINT … NOT VALID block nobody.",
		},
		{
			"commit_bound",
			"Put more work into each transaction, give pg_wal a faster disk, or set synchronous_commit = off where losing the last moments is allowed.",
		},
		{"sync_replica", "Look at the replica and the network to it; synchronous_commit = local does not wait for it."},
		{"missing_index", "CREATE INDEX CONCURRENTLY on the columns that the statement selects by, then ANALYZE the table."},
		{"plan_flip", "ANALYZE the table, and compare both plans: an index may be gone, or statistics may be old."},
		{"cache_small", "Raise shared_buffers, or let statements read fewer pages."},
		{"checkpoint_storm", "Raise max_wal_size, so that checkpoints come by checkpoint_timeout."},
		{"spill", "Raise work_mem for these statements, or add an index that delivers the order."},
		{
			"vacuum",
			"Raise autovacuum_vacuum_cost_delay for the table, or lower its scale factor so that each vacuum has less to do.",
		},
		{"connection_storm", "Keep connections open, or put PgBouncer before the server."},
		{"jit", "SET jit = off, or raise jit_above_cost."},
		{"max_connections", "Raise max_connections, or put PgBouncer before the server."},
		{
			"vacuum_blocked",
			"End the old transaction; look at pg_stat_activity.xact_start, prepared transactions and replication slots.",
		},
		{"bloat", "Lower autovacuum_vacuum_scale_factor for the table, or VACUUM it."},
	}
}
