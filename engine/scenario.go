package engine

import (
	"encoding/json"
	"math"
	"time"
)

// Scenario is the authoritative configuration of a run (scenario_config), and
// the content of a template. engine/plan/template reads, checks and completes it;
// code elsewhere may rely on a Scenario being valid and complete.
type Scenario struct {
	TemplateID   string `json:"template_id,omitempty"`
	TemplateName string `json:"template_name,omitempty"`
	Name         string `json:"name"`
	Description  string `json:"description,omitempty"`
	// Target is the zero value when Matrix names several.
	Target     Target            `json:"target,omitzero"`
	Matrix     *Matrix           `json:"matrix,omitempty"`
	Workload   Workload          `json:"workload"`
	Scaling    Scaling           `json:"scaling"`
	FindMax    FindMax           `json:"find_max"`
	Guardrails Guardrails        `json:"guardrails"`
	Thresholds []string          `json:"thresholds,omitempty"`
	Rules      []Rule            `json:"rules,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	// Export is ExportLive, or empty: then the run is taken to the server's results connection when it has ended.
	Export string `json:"export,omitempty"`
}

// ExportLive has what is known of a run copied to the server's results connection while it goes on.
const ExportLive = "live"

// Target says which table of which database takes the load.
type Target struct {
	Connection ConnectionRef `json:"connection"`
	// ConnectionID is the saved connection that the name stood for when a user wrote it. Runs and templates are stored
	// with it; a document has none.
	ConnectionID string `json:"connection_id,omitempty"`
	// Adapter is the adapter plugin, that is, the table type.
	Adapter string `json:"adapter"`
	// TableName may be empty when the workload uses no table, or several: their
	// names then begin with it.
	TableName string `json:"table_name,omitempty"`
	// TableType and Warehouse are accepted from older documents.
	TableType string `json:"table_type,omitempty"`
	Warehouse string `json:"warehouse,omitempty"`
	// HousekeepingWarehouse executes what is asked beside the load: polls, and what the query history says afterwards.
	HousekeepingWarehouse string `json:"housekeeping_warehouse,omitempty"`
	// Params are the adapter's own parameters.
	Params json.RawMessage `json:"params,omitempty"`
	// Prepare asks for sample data. Without it the table must exist.
	Prepare *Prepare `json:"prepare,omitempty"`
	// AllowWrites lets the run write to tables that Loadstone did not make, and drop
	// them for if_exists: recreate. Those it made need no leave.
	AllowWrites bool `json:"allow_writes,omitempty"`
	// Prepared says whether sessions keep prepared statements; nil: wherever they can.
	Prepared *bool `json:"prepared,omitempty"`
}

// Ref is the connection with the id that its name stood for, where that is known.
func (t Target) Ref() ConnectionRef {
	ref := t.Connection
	if !ref.Inline() {
		ref.ID = t.ConnectionID
	}
	return ref
}

// ConnectionRef names a saved connection, or spells one out.
// In JSON it is a string (the name) or an object.
type ConnectionRef struct {
	Name string `json:"-"`
	// ID is the id of the saved connection; where it is set, the name is not looked up. See Target.ConnectionID.
	ID     string `json:"-"`
	Driver string `json:"driver,omitempty"`
	// DSN is in clear only between parsing and the store; see DSNSealed.
	DSN string `json:"dsn,omitempty"`
	// DSNSealed is the DSN under the server's key (base64). The store writes it
	// in place of a DSN with a secret; it never leaves the server.
	DSNSealed string `json:"dsn_sealed,omitempty"`
}

// Inline reports whether the connection is spelled out in the document.
func (c ConnectionRef) Inline() bool { return c.Name == "" && c.ID == "" }

// MarshalJSON writes a name as a string and an inline connection as an object.
func (c ConnectionRef) MarshalJSON() ([]byte, error) {
	if !c.Inline() {
		return json.Marshal(c.Name)
	}
	type object ConnectionRef
	return json.Marshal(object(c))
}

// UnmarshalJSON reads either form.
func (c *ConnectionRef) UnmarshalJSON(b []byte) error {
	*c = ConnectionRef{}
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &c.Name)
	}
	type object ConnectionRef
	return json.Unmarshal(b, (*object)(c))
}

// IfExists says what preparing does with a table that is there already.
type IfExists string

// A table is dropped only by "recreate", that is, only when the document asks for it.
const (
	IfExistsUse      IfExists = "use"
	IfExistsRecreate IfExists = "recreate"
	IfExistsFail     IfExists = "fail"
)

// Prepare asks for a table with sample rows.
type Prepare struct {
	// Rows is 0 when the document leaves it to the workload.
	Rows     int64    `json:"rows,omitempty"`
	IfExists IfExists `json:"if_exists"`
	// Load is LoadCopy, or empty for LoadAuto.
	Load LoadFrom `json:"load,omitempty"`
}

// LoadFrom says where sample rows come from.
type LoadFrom string

// Auto has the database make the rows itself where the workload's table and the
// table type allow it; copy sends the workload's rows to any database.
const (
	LoadAuto LoadFrom = "auto"
	LoadCopy LoadFrom = "copy"
)

// LoadMode says what drives the load.
type LoadMode string

// The load modes.
const (
	LoadConcurrency LoadMode = "CONCURRENCY"
	LoadQPS         LoadMode = "QPS"
	LoadFindMax     LoadMode = "FIND_MAX_CONCURRENCY"
)

// Arrival is the arrival process of an open loop.
type Arrival string

// The arrival processes. ArrivalWorkload leaves the schedule to the workload:
// its delays are the gaps between due times.
const (
	ArrivalConstant Arrival = "constant"
	ArrivalPoisson  Arrival = "poisson"
	ArrivalWorkload Arrival = "workload"
)

// CatchUp says what becomes of operations that were due while the generator stood still.
type CatchUp string

// Spread begins them at twice the rate of the schedule until it is caught up, burst all at once, and drop none of them.
const (
	CatchUpSpread CatchUp = "spread"
	CatchUpBurst  CatchUp = "burst"
	CatchUpDrop   CatchUp = "drop"
)

// Ramp says how a stage reaches its level.
type Ramp string

// A linear ramp takes the whole stage; a step goes to the level at once and holds it.
const (
	RampLinear Ramp = "linear"
	RampStep   Ramp = "step"
)

// Stage is a stretch of the measurement with a rate, or a number of
// connections, of its own. The first one begins at the workload's target_qps or
// concurrent_connections, each other one where the one before has ended.
type Stage struct {
	DurationSeconds float64 `json:"duration_seconds"`
	// One of the two is given, the same in all stages of a workload.
	TargetQPS   *float64 `json:"target_qps,omitempty"`
	Connections *int     `json:"connections,omitempty"`
	Ramp        Ramp     `json:"ramp"`
}

// Duration is the length of the stage.
func (s Stage) Duration() time.Duration { return seconds(s.DurationSeconds) }

// Level is the rate or the number of connections at the stage's end.
func (s Stage) Level() float64 {
	switch {
	case s.TargetQPS != nil:
		return *s.TargetQPS
	case s.Connections != nil:
		return float64(*s.Connections)
	default:
		return 0
	}
}

// Workload says what is executed, how, and for how long.
type Workload struct {
	Plugin                string          `json:"plugin"`
	Params                json.RawMessage `json:"params"`
	LoadMode              LoadMode        `json:"load_mode"`
	ConcurrentConnections int             `json:"concurrent_connections"`
	TargetQPS             *float64        `json:"target_qps"`
	Arrival               Arrival         `json:"arrival"`
	// Stages follow each other in the measurement and last as long as it does; none means a level load.
	Stages      []Stage `json:"stages,omitempty"`
	MaxInFlight int     `json:"max_in_flight"`
	// CatchUp says what an open loop does with what became due while its generator stood still; empty is CatchUpSpread.
	CatchUp            CatchUp `json:"catch_up,omitempty"`
	DurationSeconds    float64 `json:"duration_seconds"`
	WarmupSeconds      float64 `json:"warmup_seconds"`
	ThinkTimeMs        float64 `json:"think_time_ms"`
	StatementTimeoutMs int64   `json:"statement_timeout_ms"`
	ReconnectEvery     int64   `json:"reconnect_every"`
	// OnDisconnect says what becomes of a run that has lost all of its connections; empty is DisconnectFail.
	OnDisconnect OnDisconnect `json:"on_disconnect,omitempty"`
	// ReconnectForSeconds and TolerateOutageSeconds are of a run that reconnects; see ReconnectFor and TolerateOutage.
	ReconnectForSeconds   *float64 `json:"reconnect_for_seconds,omitempty"`
	TolerateOutageSeconds *float64 `json:"tolerate_outage_seconds,omitempty"`
	// IOEngine chooses what drives the connections; empty is IOAuto.
	IOEngine IOEngine `json:"io_engine"`
	Retry    *Retry   `json:"retry,omitempty"`
	Stop     *Stop    `json:"stop,omitempty"`
	// Binds says what is kept of the parameters of failed and slow executions; see engine/results/params.
	Binds string `json:"binds,omitempty"`
	// IsolationLevel is IsolationDefault (or empty), or one in the words of the SQL standard, in lower case.
	IsolationLevel string   `json:"isolation_level,omitempty"`
	Seed           int64    `json:"seed"`
	Feed           *Feed    `json:"feed,omitempty"`
	Repeat         int      `json:"repeat"`
	ReadPercent    *float64 `json:"read_percent,omitempty"`
	WritePercent   *float64 `json:"write_percent,omitempty"`
}

// OpenLoop reports whether operations are due on a schedule.
func (w Workload) OpenLoop() bool { return w.LoadMode == LoadQPS }

// StartRate is the rate of an open loop at its beginning, warm-up included, in
// operations per second: target_qps, or else the first stage's. It is 0 when
// the workload paces itself.
func (w Workload) StartRate() float64 {
	switch {
	case w.TargetQPS != nil:
		return *w.TargetQPS
	case len(w.Stages) > 0 && w.Stages[0].TargetQPS != nil:
		return *w.Stages[0].TargetQPS
	default:
		return 0
	}
}

// OnDisconnect says what a run does when the target has closed its connections.
type OnDisconnect string

// A run that fails ends when it has lost all connections at the same time. One that reconnects opens each again.
const (
	DisconnectFail      OnDisconnect = "fail"
	DisconnectReconnect OnDisconnect = "reconnect"
)

// Reconnects reports whether lost connections are opened again, also when all of them are lost.
func (w Workload) Reconnects() bool { return w.OnDisconnect == DisconnectReconnect }

// The lengths of outages that a run which reconnects bears unless its template says otherwise.
const (
	defaultReconnectFor   = 5 * time.Minute
	defaultTolerateOutage = time.Minute
)

// ReconnectFor is how long a run worker tries to reach a target that does not answer on any connection.
func (w Workload) ReconnectFor() time.Duration {
	if w.ReconnectForSeconds == nil {
		return defaultReconnectFor
	}
	return seconds(*w.ReconnectForSeconds)
}

// TolerateOutage is for how long after the beginning of an outage neither guardrails nor the verdict judge what the
// target does; 0 of a run that does not reconnect.
func (w Workload) TolerateOutage() time.Duration {
	switch {
	case !w.Reconnects():
		return 0
	case w.TolerateOutageSeconds == nil:
		return min(defaultTolerateOutage, w.ReconnectFor())
	}
	return seconds(*w.TolerateOutageSeconds)
}

// IsolationDefault leaves the isolation level to the server.
const IsolationDefault = "default"

// Feed is where a workload that issues given operations (replay) takes them
// from. One of the two is set.
type Feed struct {
	// Run is the id of a recorded run.
	Run string `json:"run,omitempty"`
	// CSV is the text of a CSV file (at_ms, statement, values), or of JSON lines of the same: the text tells which.
	CSV string `json:"csv,omitempty"`
}

// MaxFeedCSV bounds Feed.CSV, in bytes: it is kept with the run.
const MaxFeedCSV = 4 << 20

// MaxRetries bounds Retry.Max.
const MaxRetries = 100

// Retry says which failed operations are repeated: a transaction whole, on the
// same connection. Its latency includes every try and the pauses between them.
type Retry struct {
	// Max is how often one operation is repeated, 0 to MaxRetries.
	Max     int          `json:"max"`
	Classes []ErrorClass `json:"classes"`
	// BackoffMs is the pause before the first repetition; it doubles with each
	// further one, up to 32 times, and varies by half at random.
	BackoffMs float64 `json:"backoff_ms"`
}

// Stop says how a run ends.
type Stop struct {
	// DrainSeconds is how long operations in flight may take to end after STOP, whatever its
	// reason; nil leaves it to the reason.
	DrainSeconds *float64 `json:"drain_seconds,omitempty"`
}

// ConnectionsAt is how many connections the stages ask for at a time since the
// measurement began; before and without stages it is concurrent_connections.
func (w Workload) ConnectionsAt(at time.Duration) int {
	level := float64(w.ConcurrentConnections)
	for _, s := range w.Stages {
		if at < 0 {
			break
		}
		end := s.Level()
		if at >= s.Duration() || s.Ramp == RampStep {
			level = end
		} else {
			level += (end - level) * float64(at) / float64(s.Duration())
		}
		if at < s.Duration() {
			break
		}
		at -= s.Duration()
	}
	return int(math.Round(level))
}

// RateAt is the rate that the stages ask for at a time since the measurement
// began; before and without stages it is StartRate.
func (w Workload) RateAt(at time.Duration) float64 {
	level := w.StartRate()
	for _, s := range w.Stages {
		if at < 0 {
			break
		}
		end := s.Level()
		switch {
		case at >= s.Duration() || s.Ramp == RampStep:
			level = end
		default:
			level += (end - level) * float64(at) / float64(s.Duration())
		}
		if at < s.Duration() {
			break
		}
		at -= s.Duration()
	}
	return level
}

// NextRate is the rate to go to from a time on, and in how long: straight to what
// the stages ask for a while later, or to the end of the stage if that is sooner;
// and at once where the stage is level.
func (w Workload) NextRate(at, while time.Duration) (rate float64, ramp time.Duration) {
	begin := time.Duration(0)
	for _, s := range w.Stages {
		end := begin + s.Duration()
		if at >= 0 && at < end {
			if s.Ramp == RampStep {
				return w.RateAt(at), 0
			}
			ramp = min(while, end-at)
			from := w.RateAt(begin - 1)
			return from + (s.Level()-from)*float64(at+ramp-begin)/float64(s.Duration()), ramp
		}
		begin = end
	}
	return w.RateAt(at), 0
}

// NextConnections is what ConnectionsAt asks for a while later, or just before a
// step that lies between: a step is not anticipated.
func (w Workload) NextConnections(at, later time.Duration) int {
	border := time.Duration(0)
	for _, s := range w.Stages {
		if s.Ramp == RampStep && at < border && border <= at+later {
			return w.ConnectionsAt(border - 1)
		}
		border += s.Duration()
	}
	return w.ConnectionsAt(at + later)
}

// MaxConnectionsBetween is the most that ConnectionsAt asks for from one time to another.
func (w Workload) MaxConnectionsBetween(from, to time.Duration) int {
	most := max(w.ConnectionsAt(from), w.ConnectionsAt(to))
	border := time.Duration(0)
	for _, s := range w.Stages {
		// A level that ramps is highest at an end of its stage, one that steps from its beginning on.
		for _, at := range []time.Duration{border, border + s.Duration() - 1} {
			if from <= at && at <= to {
				most = max(most, w.ConnectionsAt(at))
			}
		}
		border += s.Duration()
	}
	return most
}

// IsSearch reports whether the run looks for the limit, in steps.
func (w Workload) IsSearch() bool { return w.LoadMode == LoadFindMax }

// MeanRate is the mean rate of the measurement as the schedule has it, and 0 when
// the workload paces itself or the loop is closed.
func (w Workload) MeanRate() float64 {
	if !w.OpenLoop() || w.Arrival == ArrivalWorkload {
		return 0
	}
	level := w.StartRate()
	area, total := 0.0, 0.0
	for _, s := range w.Stages {
		if s.Ramp == RampStep {
			level = s.Level()
		}
		area += (level + s.Level()) / 2 * s.DurationSeconds
		total += s.DurationSeconds
		level = s.Level()
	}
	if total <= 0 {
		return level
	}
	return area / total
}

// IOEngine is what drives the connections of a run worker.
type IOEngine string

// The I/O engines. Auto takes event loops where the system and the connections allow it. IOEvents are event loops that
// wait by epoll, IOUring those that hand the kernel whole rounds by io_uring.
const (
	IOAuto       IOEngine = "auto"
	IOEvents     IOEngine = "events"
	IOUring      IOEngine = "io_uring"
	IOGoroutines IOEngine = "goroutines"
)

// Duration is the length of the measurement.
func (w Workload) Duration() time.Duration { return seconds(w.DurationSeconds) }

// Warmup is the length of the warm-up.
func (w Workload) Warmup() time.Duration { return seconds(w.WarmupSeconds) }

// ThinkTime is the pause of a connection between two operations.
func (w Workload) ThinkTime() time.Duration {
	return time.Duration(w.ThinkTimeMs * float64(time.Millisecond))
}

// StatementTimeout bounds one statement; 0 means no bound.
func (w Workload) StatementTimeout() time.Duration {
	return time.Duration(w.StatementTimeoutMs) * time.Millisecond
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// ScalingMode says how many run workers a run has.
type ScalingMode string

// The scaling modes.
const (
	ScalingFixed   ScalingMode = "FIXED"
	ScalingBounded ScalingMode = "BOUNDED"
	ScalingAuto    ScalingMode = "AUTO"
)

// Scaling spreads the connections over run workers.
type Scaling struct {
	Mode              ScalingMode `json:"mode"`
	WorkerCount       int         `json:"worker_count"`
	PerWorkerCapacity int         `json:"per_worker_capacity"`
	MinWorkers        int         `json:"min_workers,omitempty"`
	MaxWorkers        int         `json:"max_workers,omitempty"`
	// WorkerGroupCount is accepted from older documents; it equals the worker count.
	WorkerGroupCount int `json:"worker_group_count,omitempty"`
}

// Elastic reports whether run workers come and go with the connections.
func (s Scaling) Elastic() bool { return s.Mode == ScalingBounded || s.Mode == ScalingAuto }

// Workers is how many run workers so many connections need.
func (s Scaling) Workers(connections int) int {
	need := max((connections+max(s.PerWorkerCapacity, 1)-1)/max(s.PerWorkerCapacity, 1), 1)
	switch s.Mode {
	case ScalingAuto:
		return need
	case ScalingBounded:
		return min(max(need, s.MinWorkers), max(s.MaxWorkers, 1))
	default:
		return max(s.WorkerCount, 1)
	}
}

// Capacity is the most connections that the run workers hold together.
func (s Scaling) Capacity() int {
	switch s.Mode {
	case ScalingAuto:
		return maxConnections
	case ScalingBounded:
		return max(s.MaxWorkers, 1) * max(s.PerWorkerCapacity, 1)
	default:
		return max(s.WorkerCount, 1) * max(s.PerWorkerCapacity, 1)
	}
}

// maxConnections is the most that a template may ask for.
const maxConnections = 20_000

// PeakConnections is the most connections that the run ever wants, on a target
// that allows so many (0: unknown).
func (s Scenario) PeakConnections(allowed int) int {
	w := s.Workload
	peak := w.ConcurrentConnections
	for _, st := range w.Stages {
		if st.Connections != nil {
			peak = max(peak, *st.Connections)
		}
	}
	if w.IsSearch() && s.FindMax.Unit != FindMaxRate {
		most := s.Scaling.Capacity()
		if s.FindMax.MaxConcurrency != nil {
			most = min(most, *s.FindMax.MaxConcurrency)
		}
		if allowed > 0 {
			most = min(most, allowed)
		}
		peak = max(peak, most)
	}
	return peak
}

// OverRate reports whether operations are due at a rate, also where the run looks for the highest one.
func (s Scenario) OverRate() bool {
	return s.Workload.OpenLoop() || s.Workload.IsSearch() && s.FindMax.Unit == FindMaxRate
}

// PeakWorkers is how many run workers the run may ever need at a time, on a
// target that allows so many connections (0: unknown).
func (s Scenario) PeakWorkers(allowed int) int {
	most := s.Scaling.Workers(s.PeakConnections(allowed))
	if !s.OverRate() || !s.Scaling.Elastic() {
		return most
	}
	// They join when the rate is missed.
	connections := s.Scaling.Capacity()
	if allowed > 0 {
		connections = min(connections, allowed)
	}
	return min(max(most, s.Scaling.Workers(connections)), maxWorkers)
}

// maxWorkers is the most run workers that a template may ask for.
const maxWorkers = 1000

// Spread divides total over n groups evenly; remainders go to the lowest
// groups: Spread(74, 3) is 25, 25, 24. n must be positive.
func Spread(total, n int) []int {
	shares := make([]int, n)
	for i := range shares {
		shares[i] = total / n
		if i < total%n {
			shares[i]++
		}
	}
	return shares
}

// FindMax configures the search for the limit.
type FindMax struct {
	Enabled bool `json:"enabled"`
	// Unit is FindMaxConnections or FindMaxRate.
	Unit                 FindMaxUnit `json:"unit"`
	StartConcurrency     int         `json:"start_concurrency"`
	ConcurrencyIncrement int         `json:"concurrency_increment"`
	// MaxConcurrency is the highest level that is tried; nil leaves it to what the
	// run workers and the target allow. So is MaxRate, which nil leaves open.
	MaxConcurrency *int `json:"max_concurrency"`
	// StartRate, RateIncrement and MaxRate are for a search over the rate, in
	// operations per second. A nil RateIncrement is as large as StartRate.
	StartRate           *float64 `json:"start_rate"`
	RateIncrement       *float64 `json:"rate_increment"`
	MaxRate             *float64 `json:"max_rate"`
	StepDurationSeconds float64  `json:"step_duration_seconds"`
	// MaxDurationSeconds bounds the whole search, which has no duration of its own.
	MaxDurationSeconds  float64 `json:"max_duration_seconds"`
	QPSStabilityPct     float64 `json:"qps_stability_pct"`
	LatencyStabilityPct float64 `json:"latency_stability_pct"`
	MaxErrorRatePct     float64 `json:"max_error_rate_pct"`
	SLO                 *SLO    `json:"slo,omitempty"`
}

// StepDuration is the measured part of a step.
func (f FindMax) StepDuration() time.Duration { return seconds(f.StepDurationSeconds) }

// maxSettle bounds Settle.
const maxSettle = 2 * time.Second

// Settle is the part of a step before its measurement: a fifth of the step, 2 s at most.
func (f FindMax) Settle() time.Duration { return min(f.StepDuration()/5, maxSettle) }

// MaxDuration bounds one search.
func (f FindMax) MaxDuration() time.Duration { return seconds(f.MaxDurationSeconds) }

// MaxSearchDuration bounds all repetitions of a search together.
func (s Scenario) MaxSearchDuration() time.Duration {
	return time.Duration(max(s.Workload.Repeat, 1)) * s.FindMax.MaxDuration()
}

// Guardrails stop a run that passes a limit for HoldSeconds without a break: of the
// generator and its host, and of what the target does. A nil limit does not apply.
type Guardrails struct {
	MaxCPUPercent        *float64 `json:"max_cpu_percent,omitempty"`
	MaxMemoryPercent     *float64 `json:"max_memory_percent,omitempty"`
	MaxHostCPUPercent    *float64 `json:"max_host_cpu_percent,omitempty"`
	MaxHostMemoryPercent *float64 `json:"max_host_memory_percent,omitempty"`
	// The following are of a second of the slowest run worker, or the one with most errors, once the warm-up is over.
	MaxErrorRatePct *float64 `json:"max_error_rate_pct,omitempty"`
	MaxP95Ms        *float64 `json:"max_p95_ms,omitempty"`
	MaxP99Ms        *float64 `json:"max_p99_ms,omitempty"`
	// HoldSeconds is 5 unless given.
	HoldSeconds float64 `json:"hold_seconds,omitempty"`
}

// Hold is how long a limit must be passed without a break.
func (g Guardrails) Hold() time.Duration {
	if g.HoldSeconds <= 0 {
		return defaultHold
	}
	return seconds(g.HoldSeconds)
}

const defaultHold = 5 * time.Second
