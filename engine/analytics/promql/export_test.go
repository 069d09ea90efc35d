package promql

// Together is what a selector that is wanted on several grids reads.
var Together = together
