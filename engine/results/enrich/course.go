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
	// Every is the time from the end of one poll to the next, Limit the time after which no poll is begun.
	Every, Limit time.Duration
	// Target is the ratio that is enough.
	Target float64
	// Stuck polls in a row without a new match end the course when the ratio is
	// above StuckAbove: the history leaves the others out.
	Stuck      int
	StuckAbove float64
}

// DefaultPolicy is what Snowflake's history needs.
func DefaultPolicy() Policy {
	return Policy{PageSize: 10_000, Every: 10 * time.Second, Limit: 240 * time.Second, Target: 0.9, Stuck: 3,
		StuckAbove: 0.5}
}

// MaxPages is how many pages one poll reads at most for so many executions.
func (p Policy) MaxPages(executions int64) int {
	return max(10, int(executions/int64(p.PageSize))+2)
}

// Course decides after each poll whether there is another one. It knows no
// clock: the caller tells how much time has passed.
//
//	PENDING   begun      → RUNNING, poll
//	RUNNING   polled     → ratio ≥ target                      COMPLETED
//	                     → stuck polls, ratio > stuck above    PARTIAL
//	                     → time is up                          PARTIAL
//	                     → otherwise                           poll after every
//	RUNNING   failed     → for good, 3 times in a row, or time is up  FAILED
//	                     → otherwise                           poll after every
type Course struct {
	policy     Policy
	executions int64
	matched    int64
	stuck      int
	polls      int
	failed     int // in a row
}

// Verdict is what a poll led to.
type Verdict struct {
	// Over: no further poll. Status and Reason are then set.
	Over   bool
	Status engine.EnrichmentStatus
	Reason string
	// Wait is the time until the next poll, when there is one.
	Wait time.Duration
}

// NewCourse begins with what is matched already.
func NewCourse(p Policy, executions, matched int64) *Course {
	return &Course{policy: p, executions: executions, matched: matched}
}

// Ratio is matched executions over all, 0 without executions.
func (c *Course) Ratio() float64 {
	if c.executions == 0 {
		return 0
	}
	return float64(c.matched) / float64(c.executions)
}

// Begin decides before the first poll: there may be nothing to ask for.
func (c *Course) Begin() Verdict {
	switch {
	case c.executions == 0:
		return Verdict{Over: true, Status: engine.EnrichmentSkipped,
			Reason: "No execution has a query id, so there is nothing to look for in the history."}
	case c.matched == c.executions:
		return c.over(engine.EnrichmentCompleted, "Every execution was found in the history.")
	}
	return Verdict{Status: engine.EnrichmentRunning}
}

// Polled tells how many executions are matched after a poll that ended elapsed
// after the first one began.
func (c *Course) Polled(elapsed time.Duration, matched int64) Verdict {
	c.polls++
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
		return c.over(engine.EnrichmentCompleted, "Every execution was found in the history.")
	case ratio >= c.policy.Target:
		return c.over(engine.EnrichmentCompleted,
			fmt.Sprintf("%s of the executions were found in the history, which is enough.", percent(ratio)))
	case c.stuck >= c.policy.Stuck && ratio > c.policy.StuckAbove:
		return c.over(engine.EnrichmentPartial,
			fmt.Sprintf("%s of the executions were found; %d polls brought no more, so the history leaves the others out.",
				percent(ratio), c.stuck))
	case elapsed+c.policy.Every > c.policy.Limit && c.matched == 0:
		return c.over(engine.EnrichmentPartial,
			fmt.Sprintf("None of %d executions was found in the history within %.0f s.", c.executions, c.policy.Limit.Seconds()))
	case elapsed+c.policy.Every > c.policy.Limit:
		return c.over(engine.EnrichmentPartial,
			fmt.Sprintf("%s of the executions were found in the history within %.0f s.", percent(ratio),
				c.policy.Limit.Seconds()))
	}
	return Verdict{Status: engine.EnrichmentRunning, Wait: c.policy.Every}
}

// Failed tells of a poll that ended with an error; for good means that asking
// again cannot help.
func (c *Course) Failed(elapsed time.Duration, matched int64, forGood bool, sentence string) Verdict {
	c.polls++
	c.failed++
	c.matched = max(c.matched, matched)
	if forGood || c.failed >= maxFailed || elapsed+c.policy.Every > c.policy.Limit {
		return c.over(engine.EnrichmentFailed, "The history could not be read: "+sentence)
	}
	return Verdict{Status: engine.EnrichmentRunning, Wait: c.policy.Every}
}

// maxFailed polls in a row may fail.
const maxFailed = 3

func (c *Course) over(status engine.EnrichmentStatus, reason string) Verdict {
	return Verdict{Over: true, Status: status, Reason: reason}
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
