package promql

// Limits that tests look at.
const (
	MaxConcurrent  = maxConcurrent
	HedgeAfter     = hedgeAfter
	PollInterval   = pollInterval
	MaxResultBytes = maxResultBytes
	NoNodeTimeout  = noNodeTimeout
)

// MergeGrids is what a selector that is wanted on several grids reads.
var MergeGrids = mergeGrids
