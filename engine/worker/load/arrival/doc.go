// Package arrival says when the operations of an open loop are due, as a pure function
// of what was configured: it reads no clock, and nothing that happens moves it. A Curve
// is a level over time, a Schedule the arrivals under one, and a Ledger counts them
// by itself, so that the account of a run has a side that no dispatcher has touched.
package arrival
