package engine

import "time"

// LatencyMs are exact percentiles over recorded executions (PERCENTILE_CONT,
// failures included, warm-up excluded), in milliseconds.
type LatencyMs struct {
	P50    float64 `json:"p50"`
	P90    float64 `json:"p90"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99"`
	P999   float64 `json:"p999"`
	Avg    float64 `json:"avg"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	StdDev float64 `json:"stddev"`
}

// Window is when a run was measured: rates are the operations that ended in it,
// over its length. The zero Window leaves both to the executions.
type Window struct {
	From, To time.Time
	// Connections is how many the load had at most, 0 for unknown. Varies: it had fewer at times, by
	// its stages or a search, so that its pace is that of a few seconds.
	Connections int
	Varies      bool
	// LostEnd: the run lost its server or run workers, and To is when that was noticed or when they were heard of last.
	// What was begun later is a part of the load.
	LostEnd bool
	// Partial: parts of the record are lost. Rates are taken over the time for which the parts
	// of all these run workers are there.
	Partial bool
	Workers []string
}

// Stall is a time of the measurement in which no operation was answered on any connection, or next
// to none: they ended by a timeout or the loss of their connection.
type Stall struct {
	From    Time    `json:"from"`
	Seconds float64 `json:"seconds"`
	// AnsweredOperations are at most a fiftieth of what the usual pace would have been.
	AnsweredOperations int64 `json:"answered_operations"`
	// MissedOperations should have ended in it too at the usual pace.
	MissedOperations int64 `json:"missed_operations"`
}

// Freezes are the times in which all operations were in flight and none was answered, until all were together.
type Freezes struct {
	Count          int64   `json:"count"`
	Seconds        float64 `json:"seconds"`
	LongestSeconds float64 `json:"longest_seconds"`
	// Times are the first hundred.
	Times []Stall `json:"times"`
}

// FailingTime is a time of the measurement in which over half of the operations that ended had failed: of all, or of a
// statement.
type FailingTime struct {
	// Kind and StatementID are empty for all operations.
	Kind        *Kind   `json:"kind,omitempty"`
	StatementID string  `json:"statement_id,omitempty"`
	From        Time    `json:"from"`
	Seconds     float64 `json:"seconds"`
	Operations  int64   `json:"operations"`
	Errors      int64   `json:"errors"`
	// ToTheEnd: it was not over when the measurement ended.
	ToTheEnd bool `json:"to_the_end,omitempty"`
}

// Omission estimates what a closed loop hides of its stalls: latencies as they
// would be if users had come at the usual pace meanwhile too. Lower bounds.
type Omission struct {
	StalledSeconds   float64 `json:"stalled_seconds"`
	MissedOperations int64   `json:"missed_operations"`
	P50Ms            float64 `json:"p50_ms"`
	P95Ms            float64 `json:"p95_ms"`
	P99Ms            float64 `json:"p99_ms"`
	P999Ms           float64 `json:"p999_ms"`
}

// KindFigures are the exact figures of one operation kind. One of which operations were carried over alone has a rate,
// a count of 0 and no latency.
type KindFigures struct {
	// CarriedOver were due in the warm-up and ended in the measurement: they are in QPS alone.
	CarriedOver int64 `json:"carried_over,omitempty"`
	Count       int64 `json:"count"`
	Errors      int64 `json:"errors"`
	// QPS is null where that of the run is.
	QPS  *float64 `json:"qps"`
	Rows int64    `json:"rows"`
	// NoRows succeeded and found or changed no row.
	NoRows int64 `json:"no_rows"`
	// FinishedLate of Count ended after the measurement; they are in no rate.
	FinishedLate int64      `json:"finished_late,omitempty"`
	LatencyMs    *LatencyMs `json:"latency_ms"`
}

// StatementFigures are the figures of one statement, alone or inside transactions, or of the transactions of one name
// (Kind TRANSACTION). Statements of a try that was repeated count too.
type StatementFigures struct {
	// CarriedOver were due in the warm-up and ended in the measurement: they are in QPS alone.
	CarriedOver   int64  `json:"carried_over,omitempty"`
	StatementID   string `json:"statement_id"`
	Kind          Kind   `json:"kind"`
	InTransaction bool   `json:"in_transaction"`
	Count         int64  `json:"count"`
	Errors        int64  `json:"errors"`
	// Retries counts repetitions of executions; inside transactions it is 0.
	Retries int64 `json:"retries"`
	// FinishedLate of Count ended after the measurement; they are in no rate.
	FinishedLate int64 `json:"finished_late,omitempty"`
	Rows         int64 `json:"rows"`
	// NoRows succeeded and found or changed no row.
	NoRows int64 `json:"no_rows"`
	// QPS is null where that of the run is.
	QPS *float64 `json:"qps"`
	// LatencyMs is null where operations were carried over alone.
	LatencyMs *StatementLatencyMs `json:"latency_ms"`
}

// StatementLatencyMs are exact latencies in milliseconds.
type StatementLatencyMs struct {
	Avg float64 `json:"avg"`
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// TransactionFigures tell how the transactions of the measurement ended: Count = Committed + RolledBack + Failed.
type TransactionFigures struct {
	Count     int64 `json:"count"`
	Committed int64 `json:"committed"`
	// RolledBack were undone because the workload asked for it; they are successes.
	RolledBack int64 `json:"rolled_back"`
	Failed     int64 `json:"failed"`
}

// MeasuredSecond is one second of a run's measurement; the last one may be shorter.
type MeasuredSecond struct {
	// Operations and Errors count the executions of the measurement that ended in it; Latency holds how long they took.
	Operations int64          `json:"operations"`
	Errors     int64          `json:"errors"`
	Latency    *HistogramData `json:"latency"`
	// CarriedOver were due in the warm-up and ended in it: they are in its rate, and in no other figure.
	CarriedOver int64 `json:"carried_over,omitempty"`
	// Seconds is how many seconds it covers, 0 for one: of a long measurement neighbours
	// are merged, and the last one of any may be shorter.
	Seconds float64 `json:"seconds,omitempty"`
}

// Rated is how many operations count in its rate.
func (s MeasuredSecond) Rated() int64 { return s.Operations + s.CarriedOver }

// Length is how many seconds it covers.
func (s MeasuredSecond) Length() float64 {
	if s.Seconds <= 0 {
		return 1
	}
	return s.Seconds
}

// LoadPart is the measurement between two changes of its load: what ended in it. Its percentiles are
// those of a histogram, off by 0.54 % at most.
type LoadPart struct {
	From Time `json:"from"`
	To   Time `json:"to"`
	// Load is the connections of a closed loop, the rate asked for in an open one.
	Load       float64 `json:"load"`
	Operations int64   `json:"operations"`
	Errors     int64   `json:"errors"`
	// CarriedOver were due in the warm-up and ended in it: they are in QPS alone.
	CarriedOver int64 `json:"carried_over,omitempty"`
	// QPS is null for a part of no length.
	QPS   *float64 `json:"qps"`
	P50Ms *float64 `json:"p50_ms"`
	P95Ms *float64 `json:"p95_ms"`
	P99Ms *float64 `json:"p99_ms"`
}

// ConnectionFigures say how the connections to the target held, over the whole run.
type ConnectionFigures struct {
	// Lost broke while the load went on, Refused counts attempts to open one then that
	// failed, Reopened those that succeeded, planned ones (reconnect_every, stages) among them.
	Lost     int64 `json:"lost"`
	Refused  int64 `json:"refused"`
	Reopened int64 `json:"reopened"`
	// MaxMissing is how many at once were asked for and not open for over a second.
	MaxMissing int `json:"most_missing"`
}

// Add adds what another run worker says; they may have missed theirs at the same time.
func (c *ConnectionFigures) Add(o ConnectionFigures) {
	c.Lost += o.Lost
	c.Refused += o.Refused
	c.Reopened += o.Reopened
	c.MaxMissing += o.MaxMissing
}

// Drops count arrivals of an open loop that were due and never begun, by reason.
type Drops struct {
	// MaxInFlight came while max_in_flight operations were due and not finished.
	MaxInFlight int64 `json:"max_in_flight"`
	// Stopped waited for a connection when the run was given up.
	Stopped int64 `json:"stopped"`
	// NotDispatched were due and the generator had not got to them: when the load stopped, or, with catch_up: drop, when
	// it went on after it had stood still.
	NotDispatched int64 `json:"not_dispatched"`
}

// Total is their sum.
func (d Drops) Total() int64 { return d.MaxInFlight + d.Stopped + d.NotDispatched }

// Plus returns the sum of both.
func (d Drops) Plus(o Drops) Drops {
	return Drops{d.MaxInFlight + o.MaxInFlight, d.Stopped + o.Stopped, d.NotDispatched + o.NotDispatched}
}

// Accounting is the identity that every run must meet: scheduled = started + dropped, started = succeeded + failed,
// recorded = started. It covers warm-up and measurement together; Warmup is the part before measurement. No side of an
// equation is computed from the other: arrivals are counted by the schedule that makes them, begun operations by the
// connections, records behind the file.
type Accounting struct {
	Scheduled int64 `json:"scheduled"`
	Dropped   int64 `json:"dropped"`
	// DroppedByReason adds up to Dropped.
	DroppedByReason Drops `json:"dropped_by_reason"`
	Started         int64 `json:"started"`
	Succeeded       int64 `json:"succeeded"`
	Failed          int64 `json:"failed"`
	Recorded        int64 `json:"recorded"`
	// Warmup is the part of Started before the measurement, WarmupScheduled and
	// WarmupDropped those of Scheduled and Dropped.
	Warmup          int64 `json:"warmup"`
	WarmupScheduled int64 `json:"warmup_scheduled"`
	WarmupDropped   int64 `json:"warmup_dropped"`
	// Statements is how many statements of transactions are recorded beside the
	// executions; they are part of no other count.
	Statements int64 `json:"statements"`
	// Balanced is the result of the check; Problems says what does not add up.
	Balanced bool     `json:"balanced"`
	Problems []string `json:"problems,omitempty"`
}

// Add adds the counts of another run worker. Whether they add up is checked again with Check.
func (a *Accounting) Add(o Accounting) {
	a.Scheduled += o.Scheduled
	a.Dropped += o.Dropped
	a.DroppedByReason = a.DroppedByReason.Plus(o.DroppedByReason)
	a.Started += o.Started
	a.Succeeded += o.Succeeded
	a.Failed += o.Failed
	a.Recorded += o.Recorded
	a.Warmup += o.Warmup
	a.WarmupScheduled += o.WarmupScheduled
	a.WarmupDropped += o.WarmupDropped
	a.Statements += o.Statements
}

// Totals are what the load of a run worker has counted: its account, and what became of its connections and keys. They
// are the same where load counts them, on the stream to the server, beside the parts in a spool, and in the figures.
type Totals struct {
	Accounting
	Connections ConnectionFigures `json:"connections"`
	// KeysReplaced counts operations that got another key, because the INSERT of theirs had failed.
	KeysReplaced int64 `json:"keys_replaced"`
}

// Add adds those of another run worker.
func (t *Totals) Add(o Totals) {
	t.Accounting.Add(o.Accounting)
	t.Connections.Add(o.Connections)
	t.KeysReplaced += o.KeysReplaced
}

// Measured returns how many operations the measurement scheduled and dropped.
func (a *Accounting) Measured() (scheduled, dropped int64) {
	return a.Scheduled - a.WarmupScheduled, a.Dropped - a.WarmupDropped
}

// Check sets Balanced and Problems.
func (a *Accounting) Check() {
	a.Problems = nil
	add := func(ok bool, text string) {
		if !ok {
			a.Problems = append(a.Problems, text)
		}
	}
	add(a.Scheduled == a.Started+a.Dropped, "scheduled is not started + dropped")
	add(a.Started == a.Succeeded+a.Failed, "started is not succeeded + failed")
	add(a.Recorded == a.Started, "the number of records is not the number started")
	a.Balanced = len(a.Problems) == 0
}

// ErrorFigures counts failed executions of the measurement.
type ErrorFigures struct {
	Count int64 `json:"count"`
	// Rate is a fraction of the operations, null without any.
	Rate    *float64             `json:"rate"`
	ByClass map[ErrorClass]int64 `json:"by_class"`
	// Top lists the most frequent errors, at most 20.
	Top []ErrorGroup `json:"top"`
}

// ErrorGroup counts one distinct error.
type ErrorGroup struct {
	ExecutionError
	Count int64 `json:"count"`
}

// HistogramBucket counts executions with FromMs < latency ≤ ToMs.
type HistogramBucket struct {
	FromMs float64 `json:"from_ms"`
	ToMs   float64 `json:"to_ms"`
	Count  int64   `json:"count"`
}

// SlowExecution is one of the slowest executions of the measurement.
type SlowExecution struct {
	WorkerID     string  `json:"worker_id"`
	ConnectionID uint32  `json:"connection_id"`
	Seq          uint32  `json:"seq"`
	Kind         Kind    `json:"kind"`
	StatementID  string  `json:"statement_id"`
	StartedAt    Time    `json:"started_at"`
	AppElapsedMs float64 `json:"app_elapsed_ms"`
	Rows         int32   `json:"rows"`
	Success      bool    `json:"success"`
	ErrorClass   string  `json:"error_class,omitempty"`
	ErrorMessage string  `json:"error_message,omitempty"`
	// ServerQueryID is the database's name for the query, "" when it gave none.
	ServerQueryID string `json:"server_query_id"`
}

// Figures are what the recorded executions say, exactly. Except for Accounting they cover the measurement only.
type Figures struct {
	Operations int64 `json:"operations"`
	Reads      int64 `json:"reads"`
	Writes     int64 `json:"writes"`
	// DurationSeconds is the length of the measurement: as planned, or until the load
	// was stopped. What the run did by itself ends with its last execution.
	DurationSeconds float64 `json:"duration_seconds"`
	MeasuredFrom    Time    `json:"measured_from"`
	MeasuredTo      Time    `json:"measured_to"`
	// QPS counts the operations that ended in the measurement, over its length. FinishedLate
	// of Operations ended in the drain that followed, which took DrainSeconds; they are in no rate. QPS is null where
	// nothing was measured, and where the record is lost: it is not known then.
	QPS          *float64 `json:"qps"`
	FinishedLate int64    `json:"finished_late"`
	// CarriedOver were due in the warm-up and ended in the measurement: they are in the rates, and in no other figure.
	CarriedOver int64 `json:"carried_over"`
	// Overran are operations that run workers began after the measurement because no STOP reached them: they are in the
	// account and in no figure.
	Overran int64 `json:"-"`
	// HeldOver is what operations of the warm-up took of the measurement; the store does not keep it.
	HeldOver     HeldOver `json:"-"`
	DrainSeconds float64  `json:"drain_seconds"`
	// LastEnded is when the last execution of the measurement ended, by the record; the store does not keep it.
	LastEnded Time `json:"-"`
	// RecordPartial: parts of the record are lost. CoveredSeconds is for how long all of it is there, and rates are over
	// that; it is null of a whole record, and where there is no such time: then there are no rates either.
	RecordPartial  bool     `json:"record_partial,omitempty"`
	CoveredSeconds *float64 `json:"covered_seconds"`
	// Stalls are at least a second long; Omission is of a closed loop that had some, else null.
	Stalls []Stall `json:"stalls,omitempty"`
	// Freezes are of a closed loop that had at least two, else left out: also shorter ones than stalls.
	Freezes *Freezes `json:"freezes,omitempty"`
	// Failing are the times in which over half of what ended had failed, of all operations or of a statement.
	Failing  []FailingTime `json:"failing,omitempty"`
	Omission *Omission     `json:"coordinated_omission"`
	// Outages are those of a run that reconnects, in order; an empty list says that there was none. It is left out where
	// nobody looked.
	Outages []Outage `json:"outages,omitzero"`
	// UnknownOutcomes counts the operations of the whole record, warm-up included, that may have been committed, in an
	// outage or not. It is there where Outages is.
	UnknownOutcomes *int64 `json:"unknown_outcomes,omitempty"`
	// LatencyMs is the response time: in an open loop from when an operation was due.
	LatencyMs *LatencyMs `json:"latency_ms"`
	// The following are of an open loop, null in a closed one: ServiceMs is the latency from when an operation was
	// begun, ScheduleLagMs by how much the generator was late, TargetQPS the mean rate that the schedule asked for.
	ServiceMs     *LatencyMs `json:"service_ms"`
	ScheduleLagMs *LatencyMs `json:"schedule_lag_ms"`
	TargetQPS     *float64   `json:"target_qps"`
	// SplitMs are the mean parts of the latency, null without executions.
	SplitMs *SplitMs              `json:"latency_split"`
	ByKind  map[Kind]*KindFigures `json:"by_kind"`
	// ByStatement lists every statement, those inside transactions too.
	ByStatement []StatementFigures `json:"by_statement"`
	// ByLoad are the parts of a measurement whose load users have changed, in order; else left out.
	ByLoad []LoadPart `json:"by_load,omitempty"`
	// Transactions is null when there were none.
	Transactions *TransactionFigures `json:"transactions"`
	// Retries counts repetitions of failed operations; an operation counts once however often it was tried.
	Retries int64        `json:"retries"`
	Errors  ErrorFigures `json:"errors"`
	// Connections is null in runs of which no run worker told.
	Connections *ConnectionFigures `json:"connections"`
	// KeysReplaced counts operations that were to look for a row whose INSERT had failed, and got the
	// key of another row.
	KeysReplaced int64      `json:"keys_replaced"`
	Accounting   Accounting `json:"accounting"`
	// CountsOnly: of a run worker whose executions have not been evaluated. Operations, the account, connections and keys
	// are known; the rest is not, and null in WorkerFigures.
	CountsOnly bool `json:"counts_only,omitempty"`
	// CountsMissing says that a run worker ended without telling its counts: the others are a lower bound, and whether
	// they add up says nothing.
	CountsMissing bool              `json:"counts_missing,omitempty"`
	Histogram     []HistogramBucket `json:"histogram"`
	// LivePercentiles tell what the run's own live percentiles were off by; null where none were shown.
	LivePercentiles []LivePercentile `json:"live_percentiles"`
	Slowest         []SlowExecution  `json:"slowest"`
	// LoadStart is of a run worker whose load began, else left out.
	LoadStart *LoadStart `json:"beginning,omitempty"`
	// ServerTime says where the client's time went, Findings why operations were slow, those first that cost most.
	// Both are left out where the server was not observed.
	ServerTime *ServerTime `json:"server_time,omitempty"`
	Findings   []Finding   `json:"findings,omitempty"`
}

// HeldOver is for how long in the measurement connections were busy with operations that were begun in the warm-up, all
// together and with one of them at most: such an operation is in no latency.
type HeldOver struct{ Seconds, LongestSeconds float64 }

// WorkerFigures are the figures of a run worker as they are stored and told: what is not known of CountsOnly is null.
type WorkerFigures struct {
	Figures
	Reads           *int64       `json:"reads"`
	Writes          *int64       `json:"writes"`
	DurationSeconds *float64     `json:"duration_seconds"`
	FinishedLate    *int64       `json:"finished_late"`
	CarriedOver     *int64       `json:"carried_over"`
	DrainSeconds    *float64     `json:"drain_seconds"`
	Retries         *int64       `json:"retries"`
	Errors          WorkerErrors `json:"errors"`
}

// WorkerErrors are ErrorFigures of which nothing may be known.
type WorkerErrors struct {
	Count   *int64               `json:"count"`
	Rate    *float64             `json:"rate"`
	ByClass map[ErrorClass]int64 `json:"by_class"`
	Top     []ErrorGroup         `json:"top"`
}

// OfWorker are the figures as they are stored and told, nil without any.
func (f *Figures) OfWorker() *WorkerFigures {
	switch {
	case f == nil:
		return nil
	case f.CountsOnly:
		return &WorkerFigures{Figures: *f}
	}
	return &WorkerFigures{Figures: *f, Reads: &f.Reads, Writes: &f.Writes, DurationSeconds: &f.DurationSeconds,
		FinishedLate: &f.FinishedLate, CarriedOver: &f.CarriedOver, DrainSeconds: &f.DrainSeconds, Retries: &f.Retries,
		Errors: WorkerErrors{&f.Errors.Count, f.Errors.Rate, f.Errors.ByClass, f.Errors.Top}}
}

// HasSuccess reports whether any operation of the measurement succeeded. Without one the figures say nothing of the
// target.
func (f *Figures) HasSuccess() bool { return f.Operations > f.Errors.Count }

// HasRates reports whether the run has rates: it has unless nothing was measured, or its record is lost.
func (f *Figures) HasRates() bool { return f.QPS != nil }

// RecordLost reports that there is no time of which all of the record is there.
func (f *Figures) RecordLost() bool { return f.RecordPartial && f.CoveredSeconds == nil }

// Upgrade makes unknown what figures of earlier versions have as 0 and was not known.
func (f *Figures) Upgrade() {
	f.RecordPartial = f.RecordPartial || f.CoveredSeconds != nil
	if f.Operations == 0 {
		f.Errors.Rate = nil
	}
	lost := f.CoveredSeconds != nil && *f.CoveredSeconds == 0
	if lost {
		f.CoveredSeconds = nil
	}
	if !lost && f.DurationSeconds > 0 {
		return
	}
	f.QPS = nil
	for _, k := range f.ByKind {
		k.QPS = nil
	}
	for i := range f.ByStatement {
		f.ByStatement[i].QPS = nil
	}
}

// ThresholdResult is one judged threshold.
type ThresholdResult struct {
	Threshold string `json:"threshold"`
	Passed    bool   `json:"passed"`
	// Actual is null when the run has no such figure; the threshold then failed.
	Actual *float64 `json:"actual"`
	// Reason is why it failed. Of a run that did not complete it says how much of the measurement was judged, also where
	// that passed.
	Reason string `json:"reason,omitempty"`
}

// LivePercentile is a percentile of the measurement as it was shown live at its end,
// from merged histograms, beside that of all recorded executions.
type LivePercentile struct {
	Percentile float64 `json:"percentile"`
	LiveMs     float64 `json:"live_ms"`
	ExactMs    float64 `json:"exact_ms"`
	// ErrorPct is null where the exact one is zero.
	ErrorPct *float64 `json:"error_pct"`
}

// Calibration is what the generator was measured to cost and to err by, on a
// target that does nothing. See engine/worker/calibrate.
type Calibration struct {
	At Time `json:"at"`
	// MachineFingerprint and LoadstoneVersion are what it was measured for; it holds for nothing else.
	MachineFingerprint string `json:"machine_fingerprint"`
	LoadstoneVersion   string `json:"loadstone_version"`
	// Automatic: it was made before a first run or beside a server, in a few seconds, and not by `loadstone calibrate`.
	Automatic   bool   `json:"automatic"`
	CPUs        int    `json:"cpus"`
	IOEngine    string `json:"io_engine"`
	Connections int    `json:"connections"`
	// CostNs is the generator's CPU time for each operation, recording included,
	// in a closed loop; MaxQPS how many it did in a second.
	CostNs float64 `json:"cost_ns_per_operation"`
	MaxQPS float64 `json:"max_qps"`
	// Engines compares the I/O engines; empty where that was not asked for.
	Engines []IOCost `json:"engines,omitempty"`
	// The schedule: how late operations began at ScheduleRate, and how far the rate was from it.
	ScheduleRate     float64 `json:"schedule_rate"`
	ScheduleLagP50Ms float64 `json:"schedule_lag_p50_ms"`
	ScheduleLagP99Ms float64 `json:"schedule_lag_p99_ms"`
	ScheduleLagMaxMs float64 `json:"schedule_lag_max_ms"`
	RateErrorPct     float64 `json:"rate_error_pct"`
	// Percentiles compare what was measured with what the target knows of itself.
	Percentiles []PercentileError `json:"percentiles"`
	// MachineBusyPct is how busy the machine's processors were while percentiles were measured, which takes hardly any of
	// them, and ThreadsWaitedPct for how much of the time in which they could have run the generator's threads waited for
	// one: made beside other work, it says less.
	MachineBusyPct   float64 `json:"machine_busy_pct"`
	ThreadsWaitedPct float64 `json:"threads_waited_pct"`
}

// IOCost is what an operation costs with an I/O engine.
type IOCost struct {
	IOEngine IOEngine `json:"io_engine"`
	CostNs   float64  `json:"cost_ns_per_operation"`
	MaxQPS   float64  `json:"max_qps"`
	// Refused says why it cannot be used here: a clause.
	Refused string `json:"refused,omitempty"`
}

// PercentileError is how far a measured percentile was from the target's own.
// What the connection itself takes is part of the error.
type PercentileError struct {
	Percentile float64 `json:"percentile"`
	TargetMs   float64 `json:"target_ms"`
	MeasuredMs float64 `json:"measured_ms"`
	ErrorMs    float64 `json:"error_ms"`
}

// Environment names where and with what a run was made.
type Environment struct {
	LoadstoneVersion string `json:"loadstone_version"`
	GoVersion        string `json:"go_version"`
	OS               string `json:"os"`
	Arch             string `json:"arch"`
	CPUs             int    `json:"cpus"`
	CPUModel         string `json:"cpu_model"`
	MemoryBytes      int64  `json:"memory_bytes"`
	Hostname         string `json:"hostname"`
	// IOEngine is what drove the connections, IOEngineReason a clause that says why it was that one.
	IOEngine       string `json:"io_engine"`
	IOEngineReason string `json:"io_engine_reason"`
	Driver         string `json:"driver"`
	ServerVersion  string `json:"server_version"`
	TargetIsLocal  bool   `json:"target_is_local"`
	// TargetMaxConnections is how many connections the target takes, 0 when it has not said so.
	TargetMaxConnections int `json:"target_max_connections"`
	// Simulated: a stand-in that models a database answered; see target.ServerInfo.
	Simulated bool `json:"simulated"`
	// Emulated: the stand-in is another engine, which models nothing.
	Emulated bool `json:"emulated"`
	Nodes    int  `json:"nodes"`
	// Calibration is the accuracy certificate of the machine of the server and this
	// version, made once by itself; null while there is none.
	Calibration *Calibration `json:"calibration"`
}

// Summary is the result of a run as `loadstone run --out` writes it and GET /api/runs/{id} carries it.
type Summary struct {
	RunID              string  `json:"run_id"`
	RunName            string  `json:"test_name"`
	Status             Status  `json:"status"`
	CancellationReason *string `json:"cancellation_reason"`
	Validity           Verdict `json:"validity"`
	// Verdict is Validity as people read it, which names a stand-in: VALID (simulated).
	Verdict        string   `json:"verdict"`
	ValidityDetail Validity `json:"validity_detail"`
	StartTime      Time     `json:"start_time"`
	EndTime        Time     `json:"end_time"`
	Figures                 // operations, qps, duration_seconds, latency_ms, by_kind, errors, accounting …
	// FindMax is the answer of a search, null for any other run.
	FindMax     *FindMaxResult    `json:"find_max"`
	Thresholds  []ThresholdResult `json:"thresholds"`
	Passed      bool              `json:"passed"`
	Plugins     []PluginRef       `json:"plugins"`
	Environment Environment       `json:"environment"`
	// Setup is what was run, for comparisons; null in files of older versions.
	Setup *Setup `json:"setup"`
	// Simulated and Emulated are those of Environment.
	Simulated bool `json:"simulated"`
	Emulated  bool `json:"emulated"`
	// Cost follows the server's price list as it is now; null where nothing is paid by the hour.
	Cost *Cost             `json:"cost"`
	Tags map[string]string `json:"tags,omitempty"`
}

// Upgrade makes unknown what summaries of earlier versions have as 0 and was not known.
func (s *Summary) Upgrade() {
	s.Figures.Upgrade()
	if s.FindMax != nil {
		s.FindMax.Upgrade()
	}
}

// ProblemCountsMissing is the problem of an accounting whose counts are not whole.
const ProblemCountsMissing = "a run worker ended without telling its counts"
