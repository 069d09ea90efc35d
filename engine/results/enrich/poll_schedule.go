package enrich

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Policy says how long and how often a history is asked.
type Policy struct {
	// PageSize is the most rows that the history gives at once.
	PageSize int
	// Interval is the time from the end of one poll to the next, Limit the time after which no poll is begun.
	Interval, Timeout time.Duration
	// TargetRatio is the ratio that is enough.
	TargetRatio float64
	// MaxStuckPolls polls in a row without a new match end the course when the ratio is
	// above StuckAbove: the history leaves the others out.
	MaxStuckPolls int
	StuckRatio    float64
}

// DefaultPolicy is what Snowflake's history needs.
func DefaultPolicy() Policy {
	return Policy{
		PageSize:      10_000,
		Interval:      10 * time.Second,
		Timeout:       240 * time.Second,
		TargetRatio:   0.9,
		MaxStuckPolls: 3,
		StuckRatio:    0.5,
	}
}

// MaxPages is how many pages one poll reads at most for so many executions.
func (p Policy) MaxPages(executions int64) int {
	return max(10, int(executions/int64(p.PageSize))+2)
}

// PollSchedule decides after each poll whether there is another one. It knows no
// clock: the caller tells how much time has passed.
//
//	PENDING   begun      → RUNNING, poll
//	RUNNING   polled     → ratio ≥ target                      COMPLETED
//	                     → stuck polls, ratio > stuck above    PARTIAL
//	                     → time is up                          PARTIAL
//	                     → otherwise                           poll after every
//	RUNNING   failed     → for good, 3 times in a row, or time is up  FAILED
//	                     → otherwise                           poll after every
type PollSchedule struct {
	policy     Policy
	executions int64
	matched    int64
	stuck      int
	failed     int // in a row
}

// Decision is what a poll led to.
type Decision struct {
	// Done: no further poll. Status and Reason are then set.
	Done   bool
	Status engine.EnrichmentStatus
	Reason string
	// Wait is the time until the next poll, when there is one.
	Wait time.Duration
}

// NewPollSchedule begins with what is matched already.
func NewPollSchedule(p Policy, executions, matched int64) *PollSchedule {
	return &PollSchedule{policy: p, executions: executions, matched: matched}
}

// Ratio is matched executions over all, 0 without executions.
func (c *PollSchedule) Ratio() float64 {
	if c.executions == 0 {
		return 0
	}
	return float64(c.matched) / float64(c.executions)
}

// Begin decides before the first poll: there may be nothing to ask for.
func (c *PollSchedule) Begin() Decision {
	switch {
	case c.executions == 0:
		return Decision{Done: true, Status: engine.EnrichmentSkipped,
			Reason: "No execution has a query id, so there is nothing to look for in the history."}
	case c.matched == c.executions:
		return c.finish(engine.EnrichmentCompleted, "Every execution was found in the history.")
	}
	return Decision{Status: engine.EnrichmentRunning}
}

// PollSucceeded tells how many executions are matched after a poll that ended elapsed
// after the first one began.
func (c *PollSchedule) PollSucceeded(elapsed time.Duration, matched int64) Decision {
	c.failed = 0
	if matched > c.matched {
		c.stuck = 0
	} else {
		c.stuck++
	}
	c.matched = max(c.matched, matched)
	ratio := c.Ratio()
	switch {
	case c.matched == c.executions:
		return c.finish(engine.EnrichmentCompleted, "Every execution was found in the history.")
	case ratio >= c.policy.TargetRatio:
		return c.finish(engine.EnrichmentCompleted,
			fmt.Sprintf("%s of the executions were found in the history, which is enough.", percent(ratio)))
	case c.stuck >= c.policy.MaxStuckPolls && ratio > c.policy.StuckRatio:
		return c.finish(engine.EnrichmentPartial,
			fmt.Sprintf("%s of the executions were found; %d polls brought no more, so the history leaves the others out.",
				percent(ratio), c.stuck))
	case elapsed+c.policy.Interval > c.policy.Timeout && c.matched == 0:
		return c.finish(
			engine.EnrichmentPartial,
			fmt.Sprintf(
				"None of %d executions was found in the history within %.0f s.",
				c.executions,
				c.policy.Timeout.Seconds(),
			),
		)
	case elapsed+c.policy.Interval > c.policy.Timeout:
		return c.finish(engine.EnrichmentPartial,
			fmt.Sprintf("%s of the executions were found in the history within %.0f s.", percent(ratio),
				c.policy.Timeout.Seconds()))
	}
	return Decision{Status: engine.EnrichmentRunning, Wait: c.policy.Interval}
}

// PollFailed tells of a poll that ended with an error; for good means that asking
// again cannot help.
func (c *PollSchedule) PollFailed(elapsed time.Duration, matched int64, forGood bool, sentence string) Decision {
	c.failed++
	c.matched = max(c.matched, matched)
	if forGood || c.failed >= maxFailedPolls || elapsed+c.policy.Interval > c.policy.Timeout {
		return c.finish(engine.EnrichmentFailed, "The history could not be read: "+sentence)
	}
	return Decision{Status: engine.EnrichmentRunning, Wait: c.policy.Interval}
}

// maxFailedPolls polls in a row may fail.
const maxFailedPolls = 3

func (c *PollSchedule) finish(status engine.EnrichmentStatus, reason string) Decision {
	return Decision{Done: true, Status: status, Reason: reason}
}

// percent rounds down, so that only all of them are 100 %.
func percent(ratio float64) string {
	switch tenths := int64(ratio * 1000); {
	case ratio > 0 && tenths == 0:
		return "Less than 0.1 %"
	case tenths%10 == 0:
		return fmt.Sprintf("%d %%", tenths/10)
	default:
		return fmt.Sprintf("%d.%d %%", tenths/10, tenths%10)
	}
}
