package engine

import "encoding/json"

// Run is the control state of a run: one row of run_status.
type Run struct {
	RunID              string                  `json:"run_id"`
	ResultID           string                  `json:"test_id"` // of its own row of results; equals RunID
	TemplateID         string                  `json:"template_id,omitempty"`
	RunName            string                  `json:"test_name"`
	Scenario           Scenario                `json:"scenario_config"`
	Status             Status                  `json:"status"`
	Phase              Phase                   `json:"phase"`
	StartTime          Time                    `json:"start_time"`
	WarmupStartTime    Time                    `json:"warmup_start_time"`
	WarmupEndTime      Time                    `json:"warmup_end_time"`
	MeasurementEndTime Time                    `json:"measurement_end_time"`
	EndTime            Time                    `json:"end_time"`
	WorkersExpected    int                     `json:"total_workers_expected"`
	WorkersRegistered  int                     `json:"workers_registered"`
	WorkersActive      int                     `json:"workers_active"`
	WorkersCompleted   int                     `json:"workers_completed"`
	TotalOps           int64                   `json:"total_ops"`
	ErrorCount         int64                   `json:"error_count"`
	CurrentQPS         float64                 `json:"current_qps"`
	WorkerTargets      map[string]WorkerTarget `json:"worker_targets"`
	StopReason         StopReason              `json:"stop_reason,omitempty"`
	CancellationReason *string                 `json:"cancellation_reason"`
	// CreatedBy is the name of who made it; CreatedByID is the user, by which rights are judged, empty for the process.
	CreatedBy   string `json:"created_by,omitempty"`
	CreatedByID string `json:"created_by_id,omitempty" doc:"The user who made it; empty where that was a process, or is not known."`
	// A run of a matrix knows its place in it.
	MatrixMember
	// Waiting is what a run waits for that was started and has found no room yet.
	Waiting             *Waiting `json:"waiting,omitempty"`
	ExecutionsDeletedAt Time     `json:"executions_deleted_at" doc:"When its single executions were deleted; null where they were not. Its figures, charts and log stay."`
	ExecutionsDeletedBy string   `json:"executions_deleted_by,omitempty" doc:"retention, or a user's name."`
	// Rules are those of the scenario with what they gave, none before the start.
	Rules []RuleState `json:"rules,omitempty"`
	// OwnerEpoch rises each time a server takes the run over; a write with an old epoch changes nothing.
	OwnerEpoch int64 `json:"owner_epoch"`
	// Owner is the server that carries the run, or did last; empty before the start.
	Owner     string `json:"-"`
	CreatedAt Time   `json:"created_at"`
	UpdatedAt Time   `json:"updated_at"`
}

// Waiting is what a PREPARED run waits for.
type Waiting struct {
	Since           Time   `json:"since"`
	Position        int    `json:"position" doc:"1 is the next to start."`
	Connections     int    `json:"connections" doc:"How many it needs."`
	FreeConnections int    `json:"free_connections"`
	Nodes           int    `json:"nodes" doc:"Nodes that could carry it."`
	Reason          string `json:"reason" doc:"What it waits for, in words."`
}

// WorkerTarget is the absolute target of one run worker. TargetQPS is its own
// rate, nil in a closed loop and where the workload paces itself.
type WorkerTarget struct {
	TargetConnections int      `json:"target_connections"`
	TargetQPS         *float64 `json:"target_qps,omitempty"`
}

// RunResult is one row of test_results: the parent's (ResultID == RunID) or a run worker's.
type RunResult struct {
	ResultID         string            `json:"test_id"`
	RunID            string            `json:"run_id"`
	WorkerID         string            `json:"worker_id,omitempty"`
	WorkerGroupID    *int              `json:"worker_group_id,omitempty"`
	RunName          string            `json:"test_name"`
	Status           Status            `json:"status"`
	StartTime        Time              `json:"start_time"`
	EndTime          Time              `json:"end_time"`
	Figures          *Figures          `json:"figures"`
	Validity         *Validity         `json:"validity"`
	Thresholds       []ThresholdResult `json:"thresholds"`
	Passed           *bool             `json:"passed"`
	Plan             *Plan             `json:"plan"`
	Environment      *Environment      `json:"environment"`
	FindMax          *FindMaxResult    `json:"find_max_result"`
	EnrichmentStatus EnrichmentStatus  `json:"enrichment_status"`
	Enrichment       *Enrichment       `json:"enrichment,omitempty"`
	FailureReason    string            `json:"failure_reason,omitempty"`
	CreatedAt        Time              `json:"created_at"`
	UpdatedAt        Time              `json:"updated_at"`

	// Epoch is the one in which the writer of the row owns the run. It is not kept; 0 is a writer
	// who needs not own it, because the run is over.
	Epoch int64 `json:"-"`
}

// MarshalJSON has null for what is not known of the figures.
func (r RunResult) MarshalJSON() ([]byte, error) {
	type row RunResult
	return json.Marshal(struct {
		row
		Figures *WorkerFigures `json:"figures"`
	}{row(r), r.Figures.OfWorker()})
}

// RunDetail is GET /api/runs/{id}.
type RunDetail struct {
	Run
	// Summary is null until the figures are computed.
	Summary *Summary `json:"summary"`
	Plan    *Plan    `json:"plan"`
	// Workers are the run workers' results in short.
	Workers []RunResult `json:"workers"`
	// Artifacts and Events are the first of them, and how many there are.
	Artifacts      []Artifact `json:"artifacts"`
	ArtifactsTotal int64      `json:"artifacts_total"`
	Events         []Event    `json:"events"`
	EventsTotal    int64      `json:"events_total"`
	// LoadChanges are the events by which users changed the load, the last 200 of them: Events may hold none.
	LoadChanges []Event    `json:"load_changes"`
	Enrichment  Enrichment `json:"enrichment"`
	// Simulated: a stand-in that models a database was under load. False until the target has answered.
	Simulated bool `json:"simulated"`
	// Emulated: the stand-in is another engine, which models nothing.
	Emulated bool `json:"emulated"`
	// FindMax is the search of a run that is over, null without one. The live one is in Live.
	FindMax *FindMaxState `json:"find_max"`
	// Warehouse is that of the run as last polled, null without one.
	Warehouse *Warehouse `json:"warehouse"`
	// Live is the current payload of a live run, else null.
	Live *LiveState `json:"live"`
}

// Point is one second of a run: one row of metrics_snapshots, and one element of the time series.
type Point struct {
	Timestamp         Time                 `json:"timestamp"`
	ElapsedSeconds    float64              `json:"elapsed_seconds"`
	Phase             Phase                `json:"phase"`
	QPS               float64              `json:"qps"`
	ReadsPerSec       float64              `json:"reads_per_sec"`
	WritesPerSec      float64              `json:"writes_per_sec"`
	P50LatencyMs      *float64             `json:"p50_latency_ms"`
	P95LatencyMs      *float64             `json:"p95_latency_ms"`
	P99LatencyMs      *float64             `json:"p99_latency_ms"`
	AvgLatencyMs      *float64             `json:"avg_latency_ms"`
	MaxLatencyMs      *float64             `json:"max_latency_ms"`
	ErrorsPerSec      float64              `json:"errors_per_sec"`
	TotalQueries      int64                `json:"total_queries"`
	ErrorCount        int64                `json:"error_count"`
	ActiveConnections int                  `json:"active_connections"`
	TargetConnections int                  `json:"target_connections"`
	QPSByKind         map[Kind]float64     `json:"qps_by_kind"`
	ErrorsByClass     map[ErrorClass]int64 `json:"errors_by_class"` // cumulative over the phase
	Histogram         *HistogramData       `json:"histogram"`       // schema 2
	CPUPercent        float64              `json:"cpu_pct"`
	MemoryPercent     float64              `json:"memory_pct"`
	HostCPUPercent    float64              `json:"host_cpu_pct"`
	HostMemoryPercent float64              `json:"host_memory_pct"`
	LoadStats
}

// Artifact is an immutable Parquet part of a run's executions.
type Artifact struct {
	ArtifactID    string `json:"artifact_id"`
	RunID         string `json:"run_id"`
	ResultID      string `json:"test_id"`
	WorkerID      string `json:"worker_id"`
	Kind          string `json:"kind"` // executions | enrichment | binds
	Name          string `json:"name"` // file name within the run's folder
	SizeBytes     int64  `json:"artifact_size_bytes"`
	SHA256        string `json:"artifact_checksum"`
	RowCount      int64  `json:"row_count"`
	MinTime       Time   `json:"min_ts"`
	MaxTime       Time   `json:"max_ts"`
	SchemaVersion int    `json:"parquet_schema_version"`
	CreatedAt     Time   `json:"created_at"`
}

// Actor is who does something: a user, or without an id a process that calls itself so.
type Actor struct{ ID, Name string }
