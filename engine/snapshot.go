package engine

// Latency summarises a distribution in milliseconds. Fields are null in JSON when there was no execution.
type Latency struct {
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`
	Avg *float64 `json:"avg"`
	Min *float64 `json:"min"`
	Max *float64 `json:"max"`
}

// KindCounts counts the executions of one kind.
type KindCounts struct {
	Count  int64 `json:"count"`
	Errors int64 `json:"errors"`
}

// HistogramData is a mergeable base-2 exponential histogram of nanoseconds (Prometheus native schema): bucket i covers
// (2^((i-1)/2^Schema), 2^(i/2^Schema)]. Counts holds the buckets Offset, Offset+1 … See engine/base/histogram.
type HistogramData struct {
	Schema int     `json:"schema"`
	Offset int     `json:"offset"`
	Counts []int64 `json:"counts"`
	Sum    int64   `json:"sum_ns"`
	Min    int64   `json:"min_ns"`
	Max    int64   `json:"max_ns"`
}

// PackedHistogram is a HistogramData as it waits by the thousand: Counts holds them in as many bytes each, Width, as
// the largest needs (1, 2, 4 or 8, little-endian). See histogram.Pack.
type PackedHistogram struct {
	Schema, Offset, Width int
	Counts                []byte
	Sum, Min, Max         int64
}

// WorkerSnapshot is what a run worker reports each second. Counters are
// cumulative over the phase named; *_last_second fields cover the tick only.
// Scheduled counts arrivals of an open loop as they are due; the other counters what has ended.
type WorkerSnapshot struct {
	RunID         string `json:"run_id"`
	ResultID      string `json:"test_id"`
	WorkerID      string `json:"worker_id"`
	WorkerGroupID int    `json:"worker_group_id"`
	NodeID        string `json:"node_id"`
	// Tick numbers the snapshots of one run worker from 1; a repeated or late one is ignored.
	Tick int64 `json:"tick"`
	// Step is the step of a search that the tick lies in, as a whole; 0 without
	// one, and while a step settles. StepOver marks the last tick of a step.
	Step     int  `json:"step,omitempty"`
	StepOver bool `json:"step_over,omitempty"`
	// StepMissing connections were not open in a step that is over.
	StepMissing int          `json:"step_missing,omitempty"`
	Timestamp   Time         `json:"timestamp"`
	Phase       Phase        `json:"phase"`
	Status      WorkerStatus `json:"status"`
	// PhaseSeconds is the time since this worker entered Phase.
	PhaseSeconds float64 `json:"phase_seconds"`
	// TickSeconds is the time that the tick's figures cover.
	TickSeconds float64 `json:"tick_seconds"`

	Started   int64                `json:"started"`
	Succeeded int64                `json:"succeeded"`
	Failed    int64                `json:"failed"`
	Scheduled int64                `json:"scheduled"`
	Dropped   int64                `json:"dropped"`
	ByKind    map[Kind]KindCounts  `json:"by_kind"`
	ByClass   map[ErrorClass]int64 `json:"errors_by_class"`
	// Retries counts repetitions of failed operations; they are in no other count.
	Retries int64 `json:"retries,omitempty"`

	// TickScheduled counts the arrivals that an open loop made in the tick.
	TickScheduled int64               `json:"tick_scheduled,omitempty"`
	TickStarted   int64               `json:"tick_started"`
	TickDropped   int64               `json:"tick_dropped,omitempty"`
	TickErrors    int64               `json:"tick_errors"`
	TickByKind    map[Kind]KindCounts `json:"tick_by_kind"`
	// TickLatency covers the tick, PhaseLatency the phase; KindLatency the phase, per kind.
	TickLatency  *PackedHistogram          `json:"tick_latency"`
	PhaseLatency *PackedHistogram          `json:"phase_latency"`
	KindLatency  map[Kind]*PackedHistogram `json:"kind_latency"`

	// An open loop has the following: service times, without lag and wait, of the tick and the phase; by how much the
	// generator was late to start the tick's operations; the rate on the schedule (null when the workload paces
	// itself); and how many operations are due and not finished, Waiting of them without a connection.
	TickService  *PackedHistogram `json:"tick_service,omitempty"`
	PhaseService *PackedHistogram `json:"phase_service,omitempty"`
	TickLag      *PackedHistogram `json:"tick_lag,omitempty"`
	TargetQPS    *float64         `json:"target_qps,omitempty"`
	InFlight     int              `json:"in_flight,omitempty"`
	Waiting      int              `json:"waiting,omitempty"`
	// TickSplit adds up where the time of the tick's executions went.
	TickSplit LatencySplit `json:"tick_split"`

	ActiveConnections int `json:"active_connections"`
	TargetConnections int `json:"target_connections"`
	// Connections counts since the load began; Missing are asked for and have not been open for over a second,
	// Refusal is why the last attempt failed.
	Connections ConnectionFigures `json:"connections"`
	Missing     int               `json:"missing_connections,omitempty"`
	Refusal     string            `json:"refusal,omitempty"`
	Resources   Resources         `json:"resources"`
	// StalledMs is how long measuring goroutines waited for the recorder in the tick.
	StalledMs float64 `json:"stalled_ms"`
	// LastErrors are the errors that were met last, each once: newest last, at most 5.
	LastErrors []ObservedError `json:"last_errors,omitempty"`
}

// Slim is the snapshot without the distributions that only those who watch the run need.
func (s WorkerSnapshot) Slim() WorkerSnapshot {
	s.PhaseLatency, s.TickService, s.PhaseService, s.TickLag = nil, nil, nil, nil
	return s
}

// LatencySplit adds up the parts of the latency of Count executions, in ns. The
// lag is the generator's own lateness, the wait is for a free connection; both are 0 in a closed loop.
// The round trip ends, and decoding begins, with the first byte of the answer.
type LatencySplit struct {
	Count     int64 `json:"count"`
	Lag       int64 `json:"schedule_lag_ns"`
	Wait      int64 `json:"pool_wait_ns"`
	RoundTrip int64 `json:"round_trip_ns"`
	Decode    int64 `json:"decode_ns"`
}

// Add adds o to s.
func (s *LatencySplit) Add(o LatencySplit) {
	s.Count += o.Count
	s.Lag += o.Lag
	s.Wait += o.Wait
	s.RoundTrip += o.RoundTrip
	s.Decode += o.Decode
}

// Mean returns the mean parts, nil without executions.
func (s LatencySplit) Mean() *SplitMs {
	if s.Count == 0 {
		return nil
	}
	ms := func(ns int64) float64 { return float64(ns) / float64(s.Count) / 1e6 }
	return &SplitMs{ScheduleLag: ms(s.Lag), PoolWait: ms(s.Wait), RoundTrip: ms(s.RoundTrip), Decode: ms(s.Decode)}
}

// Resources is telemetry of a node's process and host. Percentages are of what
// the process may use (cgroup limits respected).
type Resources struct {
	CPUPercent        float64 `json:"cpu_pct"`
	MemoryPercent     float64 `json:"memory_pct"`
	MemoryBytes       int64   `json:"memory_bytes"`
	HostCPUPercent    float64 `json:"host_cpu_pct"`
	HostMemoryPercent float64 `json:"host_memory_pct"`
	GCPauseMaxMs      float64 `json:"gc_pause_max_ms"`
	// MaxStallMs is the longest time in which the process did not run although it was to.
	MaxStallMs float64 `json:"stood_still_ms"`
	Goroutines int     `json:"goroutines"`
	// Witness is for the verdict; nil of versions that have none.
	Witness *Witness `json:"-"`
}

// LiveState is the live state of a run: a full snapshot, once a second. Every field is present.
type LiveState struct {
	ResultID string `json:"test_id"`
	RunID    string `json:"run_id"`
	RunName  string `json:"test_name"`
	// Simulated: a stand-in that models a database is under load. False until the target has answered.
	Simulated bool    `json:"simulated"`
	Emulated  bool    `json:"emulated"`
	Status    Status  `json:"status"`
	Phase     *Phase  `json:"phase"`
	Timestamp Time    `json:"timestamp"`
	Elapsed   float64 `json:"elapsed"`
	Timing    Timing  `json:"timing"`

	Ops        OpsRate        `json:"ops"`
	Operations ReadWriteRates `json:"operations"`
	// Latency covers the last second, LatencyTotal the phase so far.
	Latency                  Latency          `json:"latency"`
	LatencyTotal             Latency          `json:"latency_total"`
	LatencyByKind            map[Kind]Latency `json:"latency_by_kind"`
	LatencyAggregationMethod *string          `json:"latency_aggregation_method"`
	// LatencyHistogram is the last second's distribution at schema 2, for the heat map.
	LatencyHistogram *HistogramData    `json:"latency_histogram"`
	OpsByKind        map[Kind]KindRate `json:"ops_by_kind"`
	Errors           ErrorStats        `json:"errors"`
	LoadStats
	// ServiceTotal covers the phase so far: the latency without what the generator and the pool added.
	ServiceTotal  Latency         `json:"service_total"`
	Connections   ConnectionStats `json:"connections"`
	Workers       []WorkerState   `json:"workers"`
	Warehouse     *Warehouse      `json:"warehouse"`
	FindMax       *FindMaxState   `json:"find_max"`
	CustomMetrics CustomMetrics   `json:"custom_metrics"`

	CancellationReason *string  `json:"cancellation_reason"`
	Validity           Validity `json:"validity"`
	// Guardrails are the limits that the run has, empty without any.
	Guardrails []GuardrailState `json:"guardrails"`
	Rules      []RuleState      `json:"rules"`
	Enrichment Enrichment       `json:"enrichment"`
	// Prepare is the progress of set-up work, null when there is none.
	Prepare     *PrepareProgress `json:"prepare"`
	Logs        []LogEntry       `json:"logs"`
	LogsDropped int64            `json:"logs_dropped"`
}

// GuardrailState is how a run stands to one of its limits.
type GuardrailState struct {
	// Name is the field of the template: max_p95_ms.
	Name  string  `json:"name"`
	Limit float64 `json:"limit"`
	// Value is what was seen last, in the unit of the name; null before that.
	Value *float64 `json:"value"`
	// HeldSeconds is for how long the limit has been passed, 0 when it is not; at HoldSeconds the run stops.
	HeldSeconds float64 `json:"held_seconds"`
	HoldSeconds float64 `json:"hold_seconds"`
}

// LoadStats says, for one second, how an open loop keeps its schedule and where
// the time of the executions went. In a closed loop TargetQPS, Service and ScheduleLag are null.
type LoadStats struct {
	// TargetQPS is the rate that the schedule asks for now, of all run workers.
	TargetQPS *float64 `json:"target_qps"`
	// InFlight operations are due and not finished; Waiting of them wait for a free connection.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	// DroppedPerSec counts operations that were due and never begun.
	DroppedPerSec float64 `json:"dropped_per_sec"`
	// Service is the latency from when an operation was begun; Latency counts from when it was due.
	Service Latency `json:"service"`
	// ScheduleLag is by how much the generator itself was late.
	ScheduleLag Latency `json:"schedule_lag"`
	// LatencySplit are the means of the parts that the latency is made of, null without executions.
	LatencySplit *SplitMs `json:"latency_split"`
}

// SplitMs are the mean parts of a latency, in milliseconds; they add up to its mean.
type SplitMs struct {
	ScheduleLag float64 `json:"schedule_lag_ms"`
	PoolWait    float64 `json:"pool_wait_ms"`
	RoundTrip   float64 `json:"round_trip_ms"`
	Decode      float64 `json:"decode_ms"`
}

// Timing tells where the run is in time.
type Timing struct {
	ElapsedDisplaySeconds  float64  `json:"elapsed_display_seconds"`
	PhaseElapsedSeconds    *float64 `json:"phase_elapsed_seconds"`
	PhaseRemainingSeconds  *float64 `json:"phase_remaining_seconds"`
	StartTime              Time     `json:"start_time"`
	WarmupStartTime        Time     `json:"warmup_start_time"`
	WarmupEndTime          Time     `json:"warmup_end_time"`
	MeasurementStartTime   Time     `json:"measurement_start_time"`
	MeasurementEndTime     Time     `json:"measurement_end_time"`
	EndTime                Time     `json:"end_time"`
	WarmupSeconds          float64  `json:"warmup_seconds"`
	DurationSeconds        float64  `json:"duration_seconds"`
	ExpectedSecondsTotal   float64  `json:"expected_seconds_total"`
	PrepareElapsedSeconds  *float64 `json:"prepare_elapsed_seconds"`
	ProcessingStartTime    Time     `json:"processing_start_time"`
	ProcessingElapsedTotal *float64 `json:"processing_elapsed_seconds"`
}

// OpsRate counts operations of the phase.
type OpsRate struct {
	Total         int64   `json:"total"`
	CurrentPerSec float64 `json:"current_per_sec"`
}

// ReadWriteRates tells reads from writes.
type ReadWriteRates struct {
	Reads        int64   `json:"reads"`
	Writes       int64   `json:"writes"`
	ReadsPerSec  float64 `json:"reads_per_sec"`
	WritesPerSec float64 `json:"writes_per_sec"`
}

// KindRate is the live figure of one kind.
type KindRate struct {
	Total  int64   `json:"total"`
	Errors int64   `json:"errors"`
	PerSec float64 `json:"per_sec"`
}

// ObservedError is an error that executions have met since the load began: how many of them (0 where that is not
// known), and when the first and the last of them ended.
type ObservedError struct {
	ExecutionError
	Count   int64 `json:"count"`
	FirstAt Time  `json:"first_at"`
	LastAt  Time  `json:"last_at"`
}

// ErrorStats counts errors of the phase; Rate is a fraction of the operations, null before any has ended. Recent are
// those that were met last, newest last.
type ErrorStats struct {
	Count   int64                `json:"count"`
	Rate    *float64             `json:"rate"`
	PerSec  float64              `json:"per_sec"`
	ByClass map[ErrorClass]int64 `json:"by_class"`
	Recent  []ObservedError      `json:"recent"`
	Dropped int64                `json:"dropped"`
	// Retries counts repetitions of failed operations over the phase; an operation
	// that succeeded in the end is no error.
	Retries int64 `json:"retries"`
}

// ConnectionStats tells open from wanted connections.
type ConnectionStats struct {
	Active int `json:"active"`
	Target int `json:"target"`
	// Missing have not been open for over a second; the others count since the load began.
	Missing  int   `json:"missing"`
	Lost     int64 `json:"lost"`
	Refused  int64 `json:"refused"`
	Reopened int64 `json:"reopened"`
}

// WorkerState is one row of the worker table.
type WorkerState struct {
	WorkerID      string       `json:"worker_id"`
	WorkerGroupID int          `json:"worker_group_id"`
	NodeID        string       `json:"node_id"`
	Status        WorkerStatus `json:"status"`
	Phase         Phase        `json:"phase"`
	Health        Health       `json:"health"`
	LastHeartbeat Time         `json:"last_heartbeat"`
	// SilentSince is when something was last heard from a run worker that should report each second and does not,
	// zero for one that does: its figures are those of then, and count until it is DEAD.
	SilentSince Time `json:"silent_since"`
	// LoadEndsBy is when a silent or lost run worker ends its load by itself, at the latest.
	LoadEndsBy Time `json:"load_ends_by"`
	// LoadStart is null until its load has begun.
	LoadStart *LoadStart    `json:"beginning"`
	Metrics   WorkerMetrics `json:"metrics"`
}

// LoadStart is how the load of a run worker began, and what its times are worth.
type LoadStart struct {
	NodeID       string   `json:"node_id"`
	StartedAt    Time     `json:"began_at" doc:"By the server's clock."`
	LateMs       float64  `json:"start_late_ms" doc:"How long after the instant that START named; 0 where START names none."`
	ClockErrorMs *float64 `json:"clock_error_ms" doc:"How far its times, as times of the server, may be wrong, either way; null while that is not known."`
}

// WorkerMetrics are the figures of one run worker.
type WorkerMetrics struct {
	// QPS is null where nobody knows it: before its first report, and of one that is lost.
	QPS          *float64 `json:"qps"`
	P50LatencyMs *float64 `json:"p50_latency_ms"`
	P95LatencyMs *float64 `json:"p95_latency_ms"`
	P99LatencyMs *float64 `json:"p99_latency_ms"`
	TotalQueries int64    `json:"total_queries"`
	// ErrorCount is null where nobody knows it: before the first report, and of one whose executions were never evaluated.
	ErrorCount        *int64  `json:"error_count"`
	ActiveConnections int     `json:"active_connections"`
	TargetConnections int     `json:"target_connections"`
	CPUPercent        float64 `json:"cpu_pct"`
}

// CustomMetrics keeps the older payload's free-form groups.
type CustomMetrics struct {
	AppOpsBreakdown map[string]int64 `json:"app_ops_breakdown"`
	SFBench         map[string]any   `json:"sf_bench"`
	Resources       Resources        `json:"resources"`
}

// PrepareProgress tells how far set-up is.
type PrepareProgress struct {
	Step          string   `json:"step"` // inspect | create | load | index | connect
	Message       string   `json:"message"`
	RowsDone      int64    `json:"rows_done"`
	RowsTotal     int64    `json:"rows_total"`
	RowsPerSecond float64  `json:"rows_per_second"`
	RemainingSecs *float64 `json:"remaining_seconds"`
}
