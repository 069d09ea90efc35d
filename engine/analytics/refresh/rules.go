package refresh

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine"
)

// ClaimTTL is how long a claim lives without a heartbeat, unless Options say otherwise.
const ClaimTTL = 2 * time.Minute

// HeartbeatInterval is how far heartbeats of a claim are apart that lives for so long: 30 s.
func HeartbeatInterval(ttl time.Duration) time.Duration { return ttl / 4 }

// SelfStop is when its holder stops without one, 90 s: before anybody else may begin.
func SelfStop(ttl time.Duration) time.Duration { return ttl * 3 / 4 }

// WaitDecay is what is left of how long a table's refreshes have waited when the next one does not wait.
const WaitDecay = 0.9

// MaxFailures is how often in a row the refresh of a table may fail.
const MaxFailures = 5

// AfterFailure says what becomes of a task whose refresh has failed so often in a row: when it is tried
// again, or that it is not.
func AfterFailure(failures int) (retry time.Duration, failed bool) {
	if failures >= MaxFailures {
		return 0, true
	}
	return 5 * time.Second << (2 * max(failures-1, 0)), false
}

// Due says when a table is to be refreshed, zero when nothing is to be done. It begins before its lag
// is reached by as much as the refresh may take and wait for a worker, but not before half of it: a table that takes
// longer than its lag would be refreshed all the time. Dues says so of tables that follow runs, which may be
// due earlier.
func Due(t Table) time.Time {
	lag := time.Duration(t.TargetLagSeconds * float64(time.Second))
	early := min(time.Duration(2*(t.LastSeconds+t.WaitSeconds)*float64(time.Second)), lag/2)
	switch {
	case t.Status != Active || t.Kind != SQL:
		return time.Time{}
	case t.AsOf.IsZero():
		return t.CreatedAt.Time
	case len(t.Sources) == 0:
		// What it reads is not known to change, or never does.
		return t.AsOf.Add(lag - early)
	case t.BehindSince.IsZero():
		return time.Time{}
	}
	if due := t.AsOf.Add(lag - early); due.After(t.BehindSince.Time) {
		return due
	}
	return t.BehindSince.Time
}

// A table that follows runs lets the longest of these pass between two refreshes: a part of its target lag, a
// time at least, and so many times what one refresh of each of such tables takes.
const (
	eventShare = 12
	eventPause = 2 * time.Second
	eventTimes = 5
)

// DueTimes returns when each table is due. A table that reads runs, directly or through others, is due soon after a run
// has ended, without its lag. The short delay merges several ends into one refresh and keeps all refreshes together
// below a fifth of one worker's time.
func DueTimes(tables []Table) map[string]time.Time {
	follows := map[string]bool{}
	for _, t := range tables {
		if t.Kind == Ingest {
			follows[t.Name] = true
		}
	}
	for more := true; more; {
		more = false
		for _, t := range tables {
			if !follows[t.Name] && slices.ContainsFunc(t.Sources, func(s string) bool { return follows[s] }) {
				follows[t.Name], more = true, true
			}
		}
	}
	var took float64
	for _, t := range tables {
		if follows[t.Name] {
			took += t.LastSeconds
		}
	}
	dues := make(map[string]time.Time, len(tables))
	for _, t := range tables {
		due := Due(t)
		if follows[t.Name] && !due.IsZero() && !t.AsOf.IsZero() {
			pause := time.Duration(max(t.TargetLagSeconds/eventShare, eventTimes*took) * float64(time.Second))
			pause = max(pause, eventPause)
			if soon := later(t.AsOf.Add(pause), t.BehindSince.Time); soon.Before(due) {
				due = soon
			}
		}
		dues[t.Name] = due
	}
	return dues
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Schedule is what is to be put into the queue, and when tables are due.
type Schedule struct {
	Enqueue []Pending
	// Due holds the tables whose next_refresh_due is another than before; a zero time is none.
	Due map[string]engine.Time
}

// Plan decides what of all tables goes into the queue now. Whatever is there stays there; a table waits for those it
// reads, as long as they are going to be refreshed themselves.
func Plan(s State) Schedule {
	plan := Schedule{Due: map[string]engine.Time{}}
	waiting := map[Task]bool{}
	for _, p := range s.Pending {
		waiting[p.Task] = true
	}
	dues := DueTimes(s.Tables)
	for _, t := range s.Tables {
		if due := dues[t.Name]; !due.Equal(t.NextDue.Time) {
			plan.Due[t.Name] = engine.At(due)
		}
	}
	underWay := func(name string) bool {
		due := dues[name]
		return waiting[Task{Table: name}] || !due.IsZero() && !due.After(s.Now.Time)
	}
	for _, t := range s.Tables {
		due := dues[t.Name]
		if due.IsZero() || due.After(s.Now.Time) || waiting[Task{Table: t.Name}] || slices.ContainsFunc(t.Sources, underWay) {
			continue
		}
		plan.Enqueue = append(plan.Enqueue, Pending{Task: Task{Table: t.Name}, Priority: t.Priority, Due: engine.At(due)})
	}
	for _, t := range s.Tables {
		if t.Kind != Ingest || t.Status != Active {
			continue
		}
		for _, run := range s.Runs[t.Name] {
			task := Task{Table: t.Name, Subtask: run}
			if !waiting[task] {
				plan.Enqueue = append(plan.Enqueue, Pending{Task: task, Priority: t.Priority, Due: s.Now})
			}
		}
	}
	return plan
}

// Check refuses what no table can be.
func Check(t Table) error {
	switch {
	case t.Name == "" || len(t.Name) > 63:
		return engine.InvalidField("name", fmt.Sprintf("has %d bytes", len(t.Name)), "choose a name of 1 to 63 bytes")
	case strings.Contains(t.Name, "/") || strings.ContainsFunc(t.Name, unicode.IsControl) || !utf8.ValidString(t.Name):
		return engine.InvalidField("name", "has a character that cannot be used", "leave out slashes and control characters")
	case strings.ContainsFunc(t.Name, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }):
		return engine.InvalidField("name", "has a character that turns the direction of writing",
			"leave it out: it would be read as another name")
	case strings.TrimSpace(t.Name) != t.Name || strings.Trim(t.Name, ".") == "":
		return engine.InvalidField("name", fmt.Sprintf("is %q", t.Name), "begin and end it with a letter")
	case t.Kind != SQL && t.Kind != Ingest:
		return engine.InvalidField("kind", fmt.Sprintf("is %q", t.Kind), "SQL")
	case t.Kind == SQL && strings.TrimSpace(t.Definition) == "":
		return engine.InvalidField("definition", "is empty", "write a SELECT")
	case t.Partitions < 0 || t.Partitions > MaxPartitions:
		return engine.InvalidField("partitions", fmt.Sprintf("is %d", t.Partitions),
			fmt.Sprintf("choose 1 to %d, or 0 to leave it to how many runs or days there are", MaxPartitions))
	case t.Partitions > 1 && t.PartitionBy == "":
		return engine.InvalidField("partitions", fmt.Sprintf("is %d, and partition_by is empty", t.Partitions),
			"say with partition_by RUN or DAY what the rows belong to")
	case t.Kind == SQL && t.Mode == Incremental && t.PartitionBy == "":
		return engine.InvalidField("refresh_mode", "is INCREMENTAL, and partition_by is empty",
			"say with partition_by RUN or DAY what the rows belong to, or choose AUTO")
	case !(t.TargetLagSeconds >= 1 && t.TargetLagSeconds <= 366*24*3600):
		return engine.InvalidField("target_lag_seconds", fmt.Sprintf("is %v", t.TargetLagSeconds),
			"choose a second to a year")
	}
	return nil
}

// ClaimLease is what the holder of a claim knows of it. Its times are those of its own clock, which stands still in
// no pause of the process.
type ClaimLease struct {
	confirmed time.Time
	ttl       time.Duration
}

// NewClaimLease is that of a claim that was asked for at the time, for so long.
func NewClaimLease(asked time.Time, ttl time.Duration) *ClaimLease { return &ClaimLease{asked, ttl} }

// Confirm notes a heartbeat that was sent at the time and has succeeded.
func (h *ClaimLease) Confirm(sent time.Time) {
	if sent.After(h.confirmed) {
		h.confirmed = sent
	}
}

// Expires is when the holder stops unless a heartbeat succeeds before.
func (h *ClaimLease) Expires() time.Time { return h.confirmed.Add(SelfStop(h.ttl)) }
