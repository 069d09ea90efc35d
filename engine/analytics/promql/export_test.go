package promql

// Limits that tests look at.
const (
	AtOnce     = atOnce
	LateAfter  = lateAfter
	LookEvery  = lookEvery
	MostAnswer = mostAnswer
	NodeLimit  = nodeLimit
)

// Together is what a selector that is wanted on several grids reads.
var Together = together
