package plugin

// OpObserve is an optional operation of an adapter whose manifest says observes: {tables, statements, lacks} → observe.
// How is what the server does read while a run goes on?
const OpObserve = "observe"

// ObservePlan says how to read what the server does. The host runs its statements natively, on one connection of its
// own beside the load: prepared, each by itself outside of any transaction, ended by the database after a second. They
// only read. Rows are found by the names of their columns, in any case.
type ObservePlan struct {
	// Skip is the sentence for the user where nothing can be observed; nothing else counts then.
	Skip string `json:"skip,omitempty"`
	// Activity is SQL without parameters with one row for each session of the server but the asking one: SESSION, STATE
	// (active, idle, in_transaction, service), CLASS (one of engine.WaitClasses), EVENT, SCOPE (row, table), TEXT,
	// ALTERS, APPLICATION, USER_NAME, BLOCKED_BY (names of sessions with commas), TRANSACTION_SECONDS and TOOK_MS, the
	// time of the look so far by the server's own clock. Idle sessions may come as one row of each APPLICATION with their
	// number in SESSIONS.
	Activity string `json:"activity"`
	// ActivityMs is how often it is asked; 0 is ten times a second. The host asks less often where a look costs more
	// than 1 % of a processor.
	ActivityMs int64 `json:"activity_ms,omitempty"`
	// Counters are asked once a second each, or every EveryMs.
	Counters []ObserveStatement `json:"counters,omitempty"`
	// Application is the whole name by which the run's own connections are known among sessions; "" where they carry the
	// run's mark.
	Application string `json:"application,omitempty"`
	// Facts are what does not change while a run goes on, by the names of ObservedFacts.
	Facts map[string]string `json:"facts,omitempty"`
	// Missing are sentences on what the role may not see, or what the server lacks, with what it would add.
	Missing []string `json:"missing,omitempty"`
	// Advice says by the name of a rule of findings what to try on this database; "" leaves the core's words.
	Advice map[string]string `json:"advice,omitempty"`
	// ExplainPrefix, before a statement, asks for its plan without executing it, with the statement's parameters left
	// open; "" where the database cannot.
	ExplainPrefix string `json:"explain_prefix,omitempty"`
}

// ObserveStatement is SQL without parameters whose rows are numbers: NAME, OBJECT and VALUE. Names that the core does
// not know are left out.
type ObserveStatement struct {
	ID  string `json:"id"`
	SQL string `json:"sql"`
	// EveryMs is how often it is asked; 0 is once a second.
	EveryMs int64 `json:"every_ms,omitempty"`
	// Parts are asked instead where the whole is refused: a view that the role may not read costs only what is of it.
	Parts []ObserveStatement `json:"parts,omitempty"`
}

// The bounds of an ObservePlan.
const (
	MaxObserveStatements = 16
	// MaxObserveMissing bounds the sentences. Parts of a statement count as statements, and have none themselves.
	MaxObserveMissing = 20
)

// The counters that the core knows. Those of a table have its name as OBJECT.
const (
	// CounterJIT is of the run's own user in its database; temporary bytes and sessions are of all who use the database.
	CounterCommits        = "commits"
	CounterRollbacks      = "rollbacks"
	CounterBlocksRead     = "blocks_read"
	CounterBlocksHit      = "blocks_hit"
	CounterTempBytes      = "temp_bytes"
	CounterDeadlocks      = "deadlocks"
	CounterSessions       = "sessions_opened"
	CounterLogBytes       = "log_bytes"
	CounterLogPageImages  = "log_page_images"
	CounterCheckpoints    = "checkpoints"
	CounterRequested      = "checkpoints_requested"
	CounterTableScans     = "table_scans"
	CounterTableScanRows  = "table_scan_rows"
	CounterTableDeadRows  = "table_dead_rows"
	CounterTableLiveRows  = "table_live_rows"
	CounterTableVacuums   = "table_vacuums"
	CounterVacuuming      = "vacuuming"
	CounterReplicaLag     = "replica_lag_bytes"
	CounterOldestSnapshot = "oldest_transaction_seconds"
	CounterConnections    = "connections"
	CounterJIT            = "jit_ms"
	CounterStarted        = "server_started"
	CounterReset          = "statistics_reset"
)

// The facts that the core knows.
const (
	FactMaxConnections = "max_connections"
	FactStandby        = "standby"
	FactVersion        = "version"
	// FactTimesSeen says that the waits of other users' sessions are shown.
	FactOthersSeen = "others_seen"
)

// CounterNames are all counters that the core knows.
func CounterNames() []string {
	return append(GaugeCounters(), CounterCommits, CounterRollbacks, CounterBlocksRead, CounterBlocksHit, CounterTempBytes,
		CounterDeadlocks, CounterSessions, CounterLogBytes, CounterLogPageImages, CounterCheckpoints, CounterRequested,
		CounterTableScans, CounterTableScanRows, CounterTableVacuums, CounterJIT)
}

// GaugeCounters are those that do not only rise.
func GaugeCounters() []string {
	return []string{CounterTableDeadRows, CounterTableLiveRows, CounterVacuuming, CounterReplicaLag,
		CounterOldestSnapshot, CounterConnections, CounterStarted, CounterReset}
}

// Texts are the statements of the plan.
func (p *ObservePlan) Texts() []string {
	var list []string
	if p.Activity != "" {
		list = append(list, p.Activity)
	}
	for _, s := range p.Counters {
		list = append(list, s.SQL)
		for _, part := range s.Parts {
			list = append(list, part.SQL)
		}
	}
	return list
}
