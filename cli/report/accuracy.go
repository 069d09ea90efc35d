package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// printAccuracy says how far the figures can be trusted: what the live percentiles
// of this run were off by, and the certificate of the generator.
func printAccuracy(p func(string, ...any), s *engine.Summary) {
	var live []string
	for _, l := range s.LivePercentiles {
		if l.ErrorPct != nil {
			live = append(live, fmt.Sprintf("P%.0f %+.2f %%", l.Percentile, *l.ErrorPct))
		}
	}
	if len(live) > 0 {
		p("live\t%s   shown live at the end, against those of all recorded executions", strings.Join(live, "   "))
	}
	c := s.Environment.Calibration
	if c == nil {
		p("generator\tnot measured on this machine with this version")
		return
	}
	if starved := s.ValidityDetail.Starved(); starved != "" {
		p("generator\t%s", starved)
		return
	}
	worst := 0.0
	for _, e := range c.Percentiles {
		if math.Abs(e.ErrorMs) > math.Abs(worst) {
			worst = e.ErrorMs
		}
	}
	p(
		"generator\t%.1f µs of CPU for an operation, at most %s op/s; begins late by P99 %s at %s op/s; percentiles off "+
			"by %+.3f ms at most",
		c.CostNs/1000,
		terminal.ShortRate(c.MaxQPS),
		terminal.Millis(c.ScheduleLagP99Ms),
		terminal.ShortRate(c.ScheduleRate),
		worst,
	)
	busy := ""
	if c.MachineBusyPct > 0 {
		busy = fmt.Sprintf(", %.0f %% of its processors busy", c.MachineBusyPct)
	}
	p("\tmeasured on this machine at %s%s; see loadstone calibrate", c.At.Format("2006-01-02 15:04"), busy)
}
