package engine

// The causes of DEGRADED.
const (
	CauseGeneratorCPU     = "generator_cpu"
	CauseGCPause          = "gc_pause"
	CauseRecorderStall    = "recorder_stall"
	CauseLostWorker       = "lost_worker"
	CauseSnapshotGap      = "snapshot_gap"
	CauseClockStep        = "clock_step"
	CauseIncompleteRecord = "incomplete_record"
	CauseScheduleLag      = "schedule_lag"
	CausePoolWait         = "pool_wait"
	CauseDropped          = "dropped"
	CauseErrors           = "errors"
	CauseFailing          = "failing"
	CauseNothingMeasured  = "nothing_measured"
	CauseFallback         = "fallback_warehouse"
	CauseKindFailed       = "kind_failed"
	CauseConnectionsShort = "connections_short"
)
