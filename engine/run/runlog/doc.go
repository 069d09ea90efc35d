// Package runlog makes the log of a run: it numbers the lines, holds those that are not
// stored yet, bounds how many there are, and has the words for what every run goes through.
package runlog
