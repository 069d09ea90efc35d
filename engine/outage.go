package engine

import (
	"fmt"
	"time"
)

// OutagePhase is a part of an outage.
type OutagePhase string

// Before the last success some connections may be lost already, and after the first one others may still be.
const (
	OutageOnset    OutagePhase = "onset"
	OutageDown     OutagePhase = "down"
	OutageRecovery OutagePhase = "recovery"
)

// Outage is a time in which no operation of a run succeeded although operations were asked for: of all, or of one kind
// while others went on. It is computed from the record.
type Outage struct {
	// Number counts from 1, in the order of LastSuccess.
	Number int `json:"number"`
	// Kind is left out of an outage of all operations.
	Kind *Kind `json:"kind,omitempty"`
	// Warmup: it began in the warm-up.
	Warmup bool `json:"warmup,omitempty"`
	// LastSuccess is when the last operation before it ended, FirstSuccess when the first one after it did; null where
	// there was none to the end of the load.
	LastSuccess  Time `json:"last_success_before"`
	FirstSuccess Time `json:"first_success_after"`
	// FirstFailure and LastFailure are null where operations only waited.
	FirstFailure Time `json:"first_failure"`
	LastFailure  Time `json:"last_failure"`
	// DownSeconds is from LastSuccess to FirstSuccess, or to the end of the load where ToTheEnd.
	DownSeconds float64 `json:"down_seconds"`
	ToTheEnd    bool    `json:"to_the_end,omitempty"`
	// RateBefore is how many operations succeeded in a second before it. From FullRateAt on 95 % of that did for 5 s;
	// FullRateSeconds is from LastSuccess to then. Null where that was not seen.
	RateBefore      float64  `json:"rate_before"`
	FullRateAt      Time     `json:"full_rate_at"`
	FullRateSeconds *float64 `json:"full_rate_seconds"`
	// Failed operations ended in it without success, Unknown of them may have been committed. Delayed were due before
	// FirstSuccess and succeeded then or later. Dropped were due and never begun, null where that is not known.
	Failed  int64  `json:"failed"`
	Unknown int64  `json:"unknown"`
	Delayed int64  `json:"delayed"`
	Dropped *int64 `json:"dropped"`
	// Errors counts Failed by the phase of the outage and the class of the error.
	Errors map[OutagePhase]map[ErrorClass]int64 `json:"errors"`
	// ByKind is empty for an outage of one kind.
	ByKind []OutageKind `json:"by_kind,omitempty"`
	// Before and After are what answered, null where nobody asked.
	Before *ServerIdentity `json:"server_before"`
	After  *ServerIdentity `json:"server_after"`
}

// OutageKind is an outage as operations of one kind met it.
type OutageKind struct {
	Kind         Kind    `json:"kind"`
	LastSuccess  Time    `json:"last_success_before"`
	FirstSuccess Time    `json:"first_success_after"`
	DownSeconds  float64 `json:"down_seconds"`
	ToTheEnd     bool    `json:"to_the_end,omitempty"`
	Failed       int64   `json:"failed"`
	Unknown      int64   `json:"unknown"`
	Delayed      int64   `json:"delayed"`
}

// ServerIdentity tells which server answered.
type ServerIdentity struct {
	// At is when it was asked.
	At Time `json:"at"`
	// Address is where it answered, Role is primary or standby.
	Address string `json:"address"`
	Role    string `json:"role"`
	Version string `json:"version"`
	// StartedAt is when it was started.
	StartedAt Time `json:"started_at"`
	// System names the cluster whose data it serves, Timeline the branch of its history; "" and 0 where it did not tell.
	System   string `json:"system_identifier,omitempty"`
	Timeline int64  `json:"timeline,omitempty"`
}

// Same reports whether both are one start of one server, in one role.
func (i ServerIdentity) Same(o ServerIdentity) bool {
	return i.StartedAt.Equal(o.StartedAt.Time) && i.Address == o.Address && i.Role == o.Role && i.Version == o.Version &&
		i.System == o.System && i.Timeline == o.Timeline
}

// Changes says what is another after an outage, "" for nothing.
func (i ServerIdentity) Changes(after ServerIdentity) string {
	switch {
	case i.System != after.System && i.System != "" && after.System != "":
		return "another database cluster answers"
	case i.Address != after.Address && after.Role != "primary":
		return "another server answers, a " + after.Role
	case i.Address != after.Address:
		return "another server answers"
	case i.Role != after.Role:
		return fmt.Sprintf("the server is a %s now", after.Role)
	case i.Version != after.Version:
		return fmt.Sprintf("the server has version %s now", after.Version)
	case !i.StartedAt.Equal(after.StartedAt.Time):
		return "the server was started anew"
	}
	return ""
}

// Until is when the outage was over, as far as it is known: with its last failure, or the first success.
func (o *Outage) Until() time.Time {
	until := o.LastSuccess.Add(time.Duration(o.DownSeconds * float64(time.Second)))
	if o.LastFailure.After(until) {
		until = o.LastFailure.Time
	}
	return until
}

// Begin is when the first operation failed or, without a failure, the last one succeeded.
func (o *Outage) Begin() time.Time {
	if !o.FirstFailure.IsZero() && o.FirstFailure.Before(o.LastSuccess.Time) {
		return o.FirstFailure.Time
	}
	return o.LastSuccess.Time
}

// Text is the outage in one line.
func (o *Outage) Text() string {
	of := ""
	if o.Kind != nil {
		of = " of " + o.Kind.String()
	}
	text := fmt.Sprintf("Outage %d%s: down for %.3g s", o.Number, of, o.DownSeconds)
	switch {
	case o.ToTheEnd:
		text += ", to the end of the load"
	case o.FullRateSeconds != nil:
		text += fmt.Sprintf(", full rate after %.3g s", *o.FullRateSeconds)
	default:
		text += ", full rate not seen again"
	}
	text += fmt.Sprintf("; %d failed", o.Failed)
	if o.Unknown > 0 {
		text += fmt.Sprintf(" (%d with unknown outcome)", o.Unknown)
	}
	if o.Delayed > 0 {
		text += fmt.Sprintf(", %d delayed", o.Delayed)
	}
	if o.Dropped != nil && *o.Dropped > 0 {
		text += fmt.Sprintf(", %d dropped", *o.Dropped)
	}
	if o.Before != nil && o.After != nil {
		if changed := o.Before.Changes(*o.After); changed != "" {
			text += "; " + changed
		}
	}
	return text
}
