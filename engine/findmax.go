package engine

// FindMaxUnit is what a search for the limit varies.
type FindMaxUnit string

// A search climbs in connections (closed loop) or in operations per second (open loop).
const (
	FindMaxConnections FindMaxUnit = "connections"
	FindMaxRate        FindMaxUnit = "rate"
)

// StepOutcome is the judgement of one step of a search.
type StepOutcome string

// The outcomes. Every one but STABLE says what a level above the limit shows.
const (
	OutcomeStable         StepOutcome = "STABLE"
	OutcomeDegraded       StepOutcome = "DEGRADED"
	OutcomeErrorThreshold StepOutcome = "ERROR_THRESHOLD"
	OutcomeQueueDetected  StepOutcome = "QUEUE_DETECTED"
	OutcomePlateau        StepOutcome = "PLATEAU"
)

// SearchStage is what a step is for.
type SearchStage string

// The stages of a search, in this order; a failed confirmation goes back to BISECTING.
const (
	StageStepping   SearchStage = "STEPPING"
	StageBisecting  SearchStage = "BISECTING"
	StageConfirming SearchStage = "CONFIRMING"
	// Steps of the following are in no history: a low load lets an overloaded target recover, and an overload on purpose
	// shows whether it outlasts its cause.
	StageRecovering  SearchStage = "RECOVERING"
	StageOverloading SearchStage = "OVERLOADING"
	StageDone        SearchStage = "DONE"
)

// SLO replaces the baseline rule of a search. A nil limit does not apply.
type SLO struct {
	P99Ms        *float64 `json:"p99_ms,omitempty"`
	P95Ms        *float64 `json:"p95_ms,omitempty"`
	ErrorRatePct *float64 `json:"error_rate_pct,omitempty"`
}

// FindMaxStep is one judged step: a row of find_max_step_history.
type FindMaxStep struct {
	// StepNumber counts through the run, Repetition tells which search of a repeated one the step belongs to; both from 1.
	StepNumber int `json:"step_number"`
	// StepID names the step in its events, its history and the payload.
	StepID     string      `json:"step_id,omitempty"`
	Repetition int         `json:"repetition"`
	Stage      SearchStage `json:"stage"`
	// TotalTargetConnections is the level in connections; TargetQPS is set instead when the search varies the rate.
	TotalTargetConnections int      `json:"total_target_connections"`
	TargetQPS              *float64 `json:"target_qps"`
	StepStartTime          Time     `json:"step_start_time"`
	StepEndTime            Time     `json:"step_end_time"`
	StepDurationSeconds    float64  `json:"step_duration_seconds"`
	TotalQueries           int64    `json:"total_queries"`
	QPS                    float64  `json:"qps"`
	// P95 and P99 are those of the slowest run worker, P50 of all together; null without an operation.
	P50LatencyMs *float64 `json:"p50_latency_ms"`
	P95LatencyMs *float64 `json:"p95_latency_ms"`
	P99LatencyMs *float64 `json:"p99_latency_ms"`
	ErrorCount   int64    `json:"error_count"`
	// DroppedCount are operations that were due and not begun, in a search over the rate.
	DroppedCount int64 `json:"dropped_count"`
	// ErrorRate is a fraction, null without an operation.
	ErrorRate        *float64    `json:"error_rate"`
	QPSVsPriorPct    *float64    `json:"qps_vs_prior_pct"`
	P95VsBaselinePct *float64    `json:"p95_vs_baseline_pct"`
	QueueDetected    bool        `json:"queue_detected"`
	Outcome          StepOutcome `json:"outcome"`
	// StopReason is a sentence, for a step that is not stable.
	StopReason string `json:"stop_reason,omitempty"`
	// QPSError is the standard error of QPS as a fraction, LateSteps how many steps of the search had been measured again
	// by then because the generator was late. Whoever goes on with the search needs them.
	QPSError  float64 `json:"-"`
	LateSteps int     `json:"-"`
	// StoodStillMs is the longest time in the step for which a generator's process ran nothing. Whoever goes on with the
	// search needs it too.
	StoodStillMs float64 `json:"-"`
}

// Level is the step's load: connections, or operations per second.
func (s FindMaxStep) Level() float64 {
	if s.TargetQPS != nil {
		return *s.TargetQPS
	}
	return float64(s.TotalTargetConnections)
}

// Held reports whether the target bore the step's level. More connections that bring no more throughput are borne; a
// rate that is not reached is not.
func (s FindMaxStep) Held() bool {
	return s.Outcome == OutcomeStable || s.Outcome == OutcomePlateau && s.TargetQPS == nil
}

// FindMaxState is the live state of a search (find_max_state, and the payload's find_max).
type FindMaxState struct {
	Unit        FindMaxUnit `json:"unit"`
	CurrentStep int         `json:"current_step"`
	// StepID is that of the current step.
	StepID string `json:"step_id,omitempty"`
	// TargetWorkers is the level in connections, under the payload's older name.
	TargetWorkers    int      `json:"target_workers"`
	TargetQPS        *float64 `json:"target_qps"`
	BaselineP95Ms    *float64 `json:"baseline_p95_ms"`
	CurrentP95Ms     *float64 `json:"current_p95_ms"`
	P95VsBaselinePct *float64 `json:"p95_vs_baseline_pct"`
	// QPS and ErrorRate are those of the current step, or of the one before while it has reported nothing; null before
	// any.
	QPS           *float64    `json:"qps"`
	QPSVsPriorPct *float64    `json:"qps_vs_prior_pct"`
	ErrorRate     *float64    `json:"error_rate"`
	QueueDetected bool        `json:"queue_detected"`
	Status        SearchStage `json:"status"`
	// StepElapsed counts from the begin of the current step, StepDuration is its length, settling included.
	StepElapsed  float64 `json:"step_elapsed_seconds"`
	StepDuration float64 `json:"step_duration_seconds"`
	// UpperBound is the highest level that may be tried.
	UpperBound float64 `json:"upper_bound"`
	// LastStable and FirstUnstable enclose the limit; null while unknown.
	LastStable    *float64      `json:"last_stable"`
	FirstUnstable *float64      `json:"first_unstable"`
	Steps         []FindMaxStep `json:"steps"`
	// Repetition is the search under way of Repeat in all; Repetitions are those that are over.
	Repetition  int                 `json:"repetition"`
	Repeat      int                 `json:"repeat"`
	Repetitions []FindMaxRepetition `json:"repetitions"`
	Result      *FindMaxResult      `json:"result"`
	LastUpdated Time                `json:"last_updated"`
}

// FindMaxResult is the answer of a search (test_results.find_max_result).
type FindMaxResult struct {
	Unit FindMaxUnit `json:"unit"`
	// Found is false when no level held; Reason then says why.
	Found bool `json:"found"`
	// MaxConnections or MaxQPSTarget is the answer, by the unit.
	MaxConnections *int     `json:"max_connections"`
	MaxQPSTarget   *float64 `json:"max_target_qps"`
	// QPS, the latencies and ErrorRate are what the answer's level gave, in its confirming step when there was one; null
	// without an answer.
	QPS           *float64 `json:"qps"`
	P50LatencyMs  *float64 `json:"p50_latency_ms"`
	P95LatencyMs  *float64 `json:"p95_latency_ms"`
	P99LatencyMs  *float64 `json:"p99_latency_ms"`
	ErrorRate     *float64 `json:"error_rate"`
	BaselineP95Ms *float64 `json:"baseline_p95_ms"`
	// Confirmed is true when a repeated step at the answer's level was stable again.
	Confirmed bool `json:"confirmed"`
	// NotEnoughOperations: fewer operations than percentiles need ended in the answer's step, however long it was.
	NotEnoughOperations bool `json:"not_enough_operations"`
	// LateSteps were measured again, because the generator was late in them.
	LateSteps int `json:"late_steps"`
	// Hysteresis is set where an overload outlasts its cause.
	Hysteresis *FindMaxHysteresis `json:"hysteresis"`
	// Limit is what the first level above the answer showed; empty when the
	// search ended at its upper bound without finding one.
	Limit         StepOutcome `json:"limit,omitempty"`
	FirstUnstable *float64    `json:"first_unstable"`
	Steps         int         `json:"steps"`
	// Reason is the answer in a sentence or two.
	Reason string `json:"reason"`
	// UpperBound is the highest level that could have been tried.
	UpperBound float64 `json:"upper_bound"`
	// History are all steps, in order.
	History []FindMaxStep `json:"history"`
	// Repetitions and Spread are of a repeated search, whose answer is that of the
	// search in the middle; null for a single one.
	Repetitions []FindMaxRepetition `json:"repetitions,omitempty"`
	Spread      *FindMaxSpread      `json:"spread,omitempty"`
}

// Upgrade makes unknown what results of earlier versions have as 0 where nothing was found.
func (r *FindMaxResult) Upgrade() {
	if !r.Found {
		r.QPS, r.ErrorRate = nil, nil
	}
	for i := range r.Repetitions {
		if x := &r.Repetitions[i]; !x.Found {
			x.QPS, x.ErrorRate = nil, nil
		}
	}
	for i := range r.History {
		r.History[i].Upgrade()
	}
}

// Upgrade makes unknown what a step of an earlier version has as 0 and was not known.
func (s *FindMaxStep) Upgrade() {
	if s.TotalQueries == 0 {
		s.ErrorRate = nil
	}
}

// FindMaxHysteresis tells, in the unit of the search, that a target did not sustain the level FailsAt right after the
// level After, though it does otherwise, and recovered at RecoversAt (0: not at all).
type FindMaxHysteresis struct {
	After      float64 `json:"after"`
	FailsAt    float64 `json:"fails_at"`
	RecoversAt float64 `json:"recovers_at"`
}

// FindMaxRepetition is the answer of one search of a repeated one.
type FindMaxRepetition struct {
	Repetition int  `json:"repetition"`
	Found      bool `json:"found"`
	// Level is the answer in the unit of the search, null when there is none.
	Level         *float64    `json:"level"`
	Confirmed     bool        `json:"confirmed"`
	QPS           *float64    `json:"qps"`
	P50LatencyMs  *float64    `json:"p50_latency_ms"`
	P95LatencyMs  *float64    `json:"p95_latency_ms"`
	P99LatencyMs  *float64    `json:"p99_latency_ms"`
	ErrorRate     *float64    `json:"error_rate"`
	BaselineP95Ms *float64    `json:"baseline_p95_ms"`
	Limit         StepOutcome `json:"limit,omitempty"`
	FirstUnstable *float64    `json:"first_unstable"`
	Steps         int         `json:"steps"`
	Reason        string      `json:"reason"`
}

// FindMaxSpread tells how far the answers of a repeated search lie apart.
// Searches that were not finished, or found nothing, are counted and have no part in the figures.
type FindMaxSpread struct {
	Requested int `json:"asked"`
	Finished  int `json:"finished"`
	Found     int `json:"found"`
	// Level is in the unit of the search, QPS the throughput at the answers; null when none was found.
	Level *Dispersion `json:"level"`
	QPS   *Dispersion `json:"qps"`
}

// Dispersion describes a few values. CVPct is the coefficient of variation, the
// sample's standard deviation in percent of its mean; null for a single value.
type Dispersion struct {
	Median float64  `json:"median"`
	Min    float64  `json:"min"`
	Max    float64  `json:"max"`
	CVPct  *float64 `json:"cv_pct"`
}

// Level is the answer in the unit of the search; ok is false when there is none.
func (r *FindMaxResult) Level() (level float64, ok bool) {
	switch {
	case r == nil || !r.Found:
		return 0, false
	case r.MaxQPSTarget != nil:
		return *r.MaxQPSTarget, true
	case r.MaxConnections != nil:
		return float64(*r.MaxConnections), true
	default:
		return 0, false
	}
}
