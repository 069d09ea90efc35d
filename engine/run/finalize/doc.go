// Package finalize computes what a run gave, once its run workers have left.
//
// It takes in the parts of the record that nodes still hold, reads every execution for
// the exact figures, checks the account (what was scheduled, started, recorded), judges
// the thresholds, remarks on what a reader should know, gives the verdict and stores all
// of it. The same evidence gives the same results, whether the process that carried the
// run computes them or one that found it after a restart.
package finalize
