// Package engine holds the nouns of a run: scenario, status, phase, control
// event, statement, execution, snapshot and figures.
//
// It imports the standard library only. Behaviour lives in the packages beside
// it (load, worker, orchestrator …); the contracts that other trees implement
// live in engine/store, engine/plugin and engine/target.
//
// JSON names follow the published payload: snake_case, with the unit in the
// name (_ms, _seconds, _pct). Times are UTC and are written as RFC 3339 with
// milliseconds (see Time).
package engine
