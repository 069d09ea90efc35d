// Package retention lets runs go that nobody needs any more: whole runs, or their single executions, which take most of
// the room, by age and by what executions may take altogether. Rules decides, purely; Keeper carries it out, one server
// for all of a control store.
package retention

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Rules are what admins have decided. Zero keeps everything.
type Rules struct {
	// Enabled: runs are let go. Rules that are not are for a preview alone.
	Enabled       bool     `json:"on" doc:"False keeps everything, whatever the rest says."`
	RunDays       int      `json:"keep_runs_days" minimum:"0" maximum:"36500" doc:"Runs that ended earlier are deleted; 0 keeps them."`
	ExecutionDays int      `json:"keep_executions_days" minimum:"0" maximum:"36500" doc:"The single executions of runs that ended earlier are deleted, and their figures stay; 0 keeps them."`
	BudgetGB      float64  `json:"executions_budget_gb" minimum:"0" maximum:"1000000000" doc:"What single executions may take altogether, in units of 10^9 bytes: above it those of the oldest runs are deleted; 0 is no bound."`
	KeepTags      []string `json:"keep_tags" nullable:"false" maxItems:"50" doc:"Runs with one of these tags stay; * is any tag."`
}

// Defaults keep everything, and tagged runs when that is changed.
func Defaults() Rules { return Rules{KeepTags: []string{store.AnyTag}} }

// MinAge is the age below which nothing of a run is deleted for the budget: it may not be taken into the results
// database yet, and somebody may be looking at it.
const MinAge = time.Hour

const maxTagLength = 200

// Check refuses what cannot be a rule.
func (r Rules) Check() error {
	for i, tag := range r.KeepTags {
		if tag == "" || utf8.RuneCountInString(tag) > maxTagLength || !utf8.ValidString(tag) {
			return engine.InvalidField(fmt.Sprintf("keep_tags[%d]", i), fmt.Sprintf("%.40q cannot be the name of a tag", tag),
				"give the name of a tag, without its value, or * for any")
		}
	}
	switch {
	case r.RunDays < 0 || r.ExecutionDays < 0:
		return engine.InvalidField("keep_runs_days", "is below 0", "give days, or 0 to keep everything")
	case math.IsNaN(r.BudgetGB) || r.BudgetGB < 0 || math.IsInf(r.BudgetGB, 0):
		return engine.InvalidField("executions_budget_gb", "is no size", "give GB, or 0 for no bound")
	case r.Enabled && r.RunDays == 0 && r.ExecutionDays == 0 && r.BudgetGB == 0:
		return engine.InvalidField("on", "is set, and nothing says what may go",
			"give days or a budget, or switch it off")
	case r.RunDays > 0 && r.ExecutionDays > r.RunDays:
		return engine.InvalidField("keep_executions_days", "is more than keep_runs_days: the executions go with their run",
			fmt.Sprintf("give at most %d, or 0", r.RunDays))
	}
	return nil
}

// Reason is why something goes.
type Reason string

// The reasons.
const (
	RunAge       Reason = "run_age"
	ExecutionAge Reason = "execution_age"
	Budget       Reason = "budget"
)

// Victim is a run that goes, or whose executions do.
type Victim struct {
	RunID   string      `json:"run_id"`
	RunName string      `json:"run_name"`
	EndedAt engine.Time `json:"ended_at"`
	Whole   bool        `json:"whole" doc:"The run goes; else its single executions."`
	Reason  Reason      `json:"reason" enum:"run_age,execution_age,budget"`
	Bytes   int64       `json:"bytes" doc:"What its executions take."`
	// Age is how long ago it has to have ended, which the store judges once more.
	Age time.Duration `json:"-"`
}

// Plan is what rules come to.
type Plan struct {
	Victims []Victim
	// Kept counts the runs that would go but for their pin.
	Kept map[store.Pin]int
	// Runs, Bytes: what is there now; BytesAfter what executions take when the victims are gone.
	Runs              int
	Bytes, BytesAfter int64
	// Over is by how much executions are above the budget then, because the rest stays.
	Over int64
}

// gigabyte is what a budget is given in.
const gigabyte = 1e9

// age is how long ago a run ended that goes for a reason.
func (r Rules) age(why Reason) time.Duration {
	switch why {
	case RunAge:
		return days(r.RunDays)
	case ExecutionAge:
		return days(r.ExecutionDays)
	default:
		return MinAge
	}
}

// Plan says what goes at a time by the store's clock; runs are those that are over, the oldest first.
func (r Rules) Plan(runs []store.EndedRun, now time.Time) Plan {
	p := Plan{Kept: map[store.Pin]int{}, Runs: len(runs)}
	counted := make([]bool, len(runs)) // it goes, or would but for its pin
	take := func(i int, why Reason) {
		run := runs[i]
		counted[i] = true
		if run.Pin != "" {
			p.Kept[run.Pin]++
			return
		}
		p.Victims = append(p.Victims, Victim{RunID: run.RunID, RunName: run.RunName, EndedAt: run.EndedAt,
			Whole: why == RunAge, Reason: why, Bytes: run.Bytes, Age: r.age(why)})
		p.BytesAfter -= run.Bytes
	}
	for i, run := range runs {
		p.Bytes += run.Bytes
		switch age := now.Sub(run.EndedAt.Time); {
		case older(age, r.RunDays):
			take(i, RunAge)
		case run.Parts > 0 && older(age, r.ExecutionDays):
			take(i, ExecutionAge)
		}
	}
	p.BytesAfter += p.Bytes
	if r.BudgetGB <= 0 {
		return p
	}
	budget := int64(math.Min(r.BudgetGB*gigabyte, math.MaxInt64/2))
	for i, run := range runs {
		if p.BytesAfter <= budget {
			break
		}
		if !counted[i] && run.Bytes > 0 && now.Sub(run.EndedAt.Time) >= MinAge {
			take(i, Budget)
		}
	}
	p.Over = max(0, p.BytesAfter-budget)
	return p
}

func days(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

func older(age time.Duration, n int) bool { return n > 0 && age > days(n) }

// Count is how many runs go whole, of how many the executions, and what is freed.
func (p Plan) Count() (whole, executions int, bytes int64) {
	for _, v := range p.Victims {
		if v.Whole {
			whole++
		} else {
			executions++
		}
		bytes += v.Bytes
	}
	return whole, executions, bytes
}
