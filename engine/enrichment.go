package engine

// EnrichmentStatus is how far a run's enrichment from the database's own query history is.
type EnrichmentStatus string

// The states of enrichment: PENDING → RUNNING → COMPLETED | PARTIAL | SKIPPED | FAILED.
// A retry goes from any of the last four back to PENDING.
const (
	EnrichmentPending   EnrichmentStatus = "PENDING"
	EnrichmentRunning   EnrichmentStatus = "RUNNING"
	EnrichmentCompleted EnrichmentStatus = "COMPLETED"
	EnrichmentPartial   EnrichmentStatus = "PARTIAL"
	EnrichmentSkipped   EnrichmentStatus = "SKIPPED"
	EnrichmentFailed    EnrichmentStatus = "FAILED"
)

// Terminal reports whether nothing more happens by itself.
func (s EnrichmentStatus) Terminal() bool { return s != EnrichmentPending && s != EnrichmentRunning }

// Enrichment is what the database's own history told of a run's executions, and how far asking for it is.
type Enrichment struct {
	Status EnrichmentStatus `json:"status"`
	// Ratio is matched executions over those with a query id, null before the first poll.
	Ratio *float64 `json:"ratio"`
	// Reason says in a sentence why the status is what it is.
	Reason string `json:"reason,omitempty"`
	// Executions have a query id, Matched of them were found in the history; WithoutID never reached the server.
	Executions int64 `json:"executions"`
	Matched    int64 `json:"matched"`
	WithoutID  int64 `json:"without_id"`
	// Polls and Pages count what has been asked since the last (re)start.
	Polls     int  `json:"polls"`
	Pages     int  `json:"pages"`
	StartedAt Time `json:"started_at"`
	EndedAt   Time `json:"ended_at"`
	// NextPollAt is null when no poll is due.
	NextPollAt Time `json:"next_poll_at"`
	// Retryable: asking again may find more.
	Retryable bool                     `json:"retryable"`
	ByKind    map[Kind]*KindEnrichment `json:"by_kind"`
	// Total are the figures of all kinds; null without a match in the measurement.
	Total *ServerFigures `json:"total"`
	// Aggregate is what the account's aggregates say, null where they are not asked.
	Aggregate *AggregateEnrichment `json:"aggregate"`
	// Notes are sentences that help to read the figures.
	Notes []string `json:"notes,omitempty"`
}

// OrNil returns the enrichment, nil when there is none to speak of: before the
// figures, and where the target has no history.
func (e Enrichment) OrNil() *Enrichment {
	if e.Status == "" || e.Status == EnrichmentSkipped {
		return nil
	}
	return &e
}

// KindEnrichment is the enrichment of one kind of operation.
type KindEnrichment struct {
	Executions int64          `json:"executions"`
	Matched    int64          `json:"matched"`
	Ratio      float64        `json:"ratio"`
	Figures    *ServerFigures `json:"figures"`
}

// ServerFigures compare client and server over the same matched executions of the measurement.
type ServerFigures struct {
	Matched int64 `json:"matched"`
	// ClientMs is what the client saw from sending to the end, ServerMs what the
	// history says; the latter knows whole milliseconds only.
	ClientMs LatencyMs `json:"client_ms"`
	ServerMs LatencyMs `json:"server_ms"`
	// Split are the mean parts of ClientMs.
	Split ServerSplitMs `json:"split"`
}

// ServerSplitMs are mean parts of a latency, in milliseconds. They add up to the mean that the client saw.
type ServerSplitMs struct {
	Compilation float64 `json:"compilation_ms"`
	// Queued is the sum of waiting for an overloaded, a starting and a repaired warehouse.
	Queued             float64 `json:"queued_ms"`
	QueuedOverload     float64 `json:"queued_overload_ms"`
	QueuedProvisioning float64 `json:"queued_provisioning_ms"`
	QueuedRepair       float64 `json:"queued_repair_ms"`
	Blocked            float64 `json:"blocked_ms"` // by another transaction
	Execution          float64 `json:"execution_ms"`
	// Other is server time that the history does not tell apart.
	Other float64 `json:"other_ms"`
	// Overhead is on the way: client minus server.
	Overhead float64 `json:"overhead_ms"`
}

// AggregateEnrichment is what the account's aggregates per minute and statement
// say of a run: all executions, also those that the query history leaves out.
type AggregateEnrichment struct {
	// Status is COMPLETED, PENDING while the account has not published them yet, or FAILED.
	Status EnrichmentStatus `json:"status"`
	Reason string           `json:"reason,omitempty"`
	// AvailableAt is when they are published at the latest. NextPollAt is when they are
	// asked for again, null when they are not any more; Polls is how often they were.
	AvailableAt Time  `json:"available_at"`
	NextPollAt  Time  `json:"next_poll_at"`
	Polls       int   `json:"polls"`
	Calls       int64 `json:"calls"`
	// Expected executions of the run, warm-up included.
	Expected  int64                 `json:"expected"`
	Throttled int64                 `json:"throttled"`
	Rows      []AggregateStatements `json:"rows"`
	FromTime  Time                  `json:"from"`
	ToTime    Time                  `json:"to"`
}

// AggregateStatements are the aggregates of one statement of the run. Times are milliseconds. Percentiles of minutes
// cannot be merged exactly: they are means weighted with the calls.
type AggregateStatements struct {
	// StatementID is empty for a text that is none of the run's statements.
	StatementID   string  `json:"statement_id"`
	Kind          *Kind   `json:"kind"`
	QueryType     string  `json:"query_type"`
	Calls         int64   `json:"calls"`
	Throttled     int64   `json:"throttled"`
	AvgMs         float64 `json:"avg_ms"`
	P50Ms         float64 `json:"p50_ms"`
	P90Ms         float64 `json:"p90_ms"`
	P99Ms         float64 `json:"p99_ms"`
	P999Ms        float64 `json:"p999_ms"`
	MaxMs         float64 `json:"max_ms"`
	CompilationMs float64 `json:"compilation_ms"`
	ExecutionMs   float64 `json:"execution_ms"`
	QueuedMs      float64 `json:"queued_ms"`
	// Client are the client's figures of the same statement, null when it measured none.
	Client *StatementLatencyMs `json:"client_ms"`
}

// EnrichedExecution is what the history knows of one execution, beside what the
// client saw: one row of an enrichment part. Times are milliseconds.
type EnrichedExecution struct {
	QueryID QueryID
	Kind    Kind
	Warmup  bool
	// EndedAt is the server's time.
	EndedAt Time
	// ClientMs is the service time that the client saw, ServerMs the server's total; OverheadMs is their difference.
	ClientMs, ServerMs, OverheadMs                         float64
	CompilationMs, ExecutionMs, BlockedMs                  float64
	QueuedOverloadMs, QueuedProvisioningMs, QueuedRepairMs float64
	// Cluster of a multi-cluster warehouse, 0 when unknown.
	Cluster int32
	// Status is the history's own word for how it ended.
	Status string
}

// QueuedMs is the time in all queues.
func (e *EnrichedExecution) QueuedMs() float64 {
	return e.QueuedOverloadMs + e.QueuedProvisioningMs + e.QueuedRepairMs
}
