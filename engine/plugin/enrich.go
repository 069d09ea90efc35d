package plugin

// The optional operations of an adapter.
const (
	// OpEnrich: {run_id, table_name, warehouse, from, to, now_ms} → enrich. How is the
	// database's own history of executions read?
	OpEnrich = "enrich"
	// OpPoll: {warehouse} → warehouse. How does what the queries execute on do now?
	// It is asked every few seconds while a run goes on.
	OpPoll = "poll"
	// OpPreflight: {table_name, warehouse, access, kinds, connections, prepare, recreate} →
	// checks, resume, restore. What would keep a run from working, and what has to be started for it?
	OpPreflight = "preflight"
)

// Check is one finding of an adapter's preflight.
type Check struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"` // ok | warning | failed
	Message string `json:"message"`
	// Fix says what to do; empty when there is nothing to do.
	Fix   string `json:"fix,omitempty"`
	Field string `json:"field,omitempty"`
}

// EnrichPlan says how to read a history. The host runs its SQL natively, as often
// as it needs, because a history may have millions of rows.
type EnrichPlan struct {
	// Skip is the sentence for the user where there is no history; nothing else counts then.
	Skip string `json:"skip,omitempty"`
	// Page is SQL with two parameters, texts like "2026-01-31 12:00:00.000 +00:00".
	// It gives the latest executions that ended between them, PageSize at most. The columns
	// are found by name, in any case: QUERY_ID, END_TIME, TOTAL_ELAPSED_TIME (ms) and, as
	// far as there are any, COMPILATION_TIME, EXECUTION_TIME, QUEUED_PROVISIONING_TIME,
	// QUEUED_REPAIR_TIME, QUEUED_OVERLOAD_TIME, TRANSACTION_BLOCKED_TIME (ms), EXECUTION_STATUS, CLUSTER_NUMBER.
	Page     string `json:"page"`
	PageSize int    `json:"page_size"`
	// ClockOffsetMs is how far the database's clock is ahead of the request's now.
	ClockOffsetMs int64 `json:"clock_offset_ms"`
	// Aggregate is SQL with three parameters: the texts of the interval, and the run's
	// id. Its rows are one for each text of a statement, with the columns QUERY_TYPE,
	// QUERY_TEXT, CALLS, THROTTLED, INTERVAL_START, INTERVAL_END, sums SUM_MS,
	// COMPILATION_SUM_MS, EXECUTION_SUM_MS, QUEUED_SUM_MS, sums of percentile times calls P50_CALLS, P90_CALLS,
	// P99_CALLS, P999_CALLS, and MAX_MS. Empty where there are no aggregates.
	Aggregate string `json:"aggregate,omitempty"`
	// AggregateDelaySeconds is how long after the executions the aggregates are there at the latest.
	AggregateDelaySeconds int `json:"aggregate_delay_seconds,omitempty"`
	// Note is a sentence on how to read the ratio.
	Note string `json:"note,omitempty"`
}
