package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// Why writes where the time of a run went, and its findings.
func Why(out io.Writer, v engine.ServerView) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	p := terminal.LinePrinter(w)
	if !v.Observed {
		p("The server was not observed. %s", terminal.OneLine(v.Reason))
		return flush(w)
	}
	if v.Reason != "" {
		p("%s", terminal.OneLine(v.Reason))
		p("")
	}
	if v.Live {
		p("The run goes on: findings may change.")
		p("")
	}
	for i := range v.Findings {
		printFinding(p, &v.Findings[i])
	}
	if v.Time != nil && v.Time.InFlight > 0 {
		printServerTime(p, v.Time)
	}
	return flush(w)
}

func printFinding(p func(string, ...any), f *engine.Finding) {
	title := terminal.OneLine(f.Title)
	if f.Level == engine.LevelNote {
		title = "note: " + title
	}
	if f.Share != nil {
		title += fmt.Sprintf(", %s of the client's time", sharePercent(*f.Share))
	}
	p("%s", title)
	p("  %s", terminal.OneLine(f.Text))
	if f.Level == engine.LevelFinding {
		p("  from %s to %s", clockTime(f.From), clockTime(f.To))
	}
	if f.Who != nil && f.Who.Statement != "" {
		p("  its statement: %s", terminal.Shorten(terminal.OneLine(f.Who.Statement), 160))
	}
	if f.Try != "" {
		p("  try: %s", terminal.OneLine(f.Try))
	}
	p("")
}

func clockTime(t engine.Time) string { return t.UTC().Format("15:04:05 UTC") }

func sharePercent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

// classNames are the classes as people read them.
var classNames = map[engine.WaitClass]string{engine.WaitCPU: "processor, or not told", engine.WaitLock: "locks",
	engine.WaitLatch: "memory structures", engine.WaitRead: "reading", engine.WaitWrite: "writing",
	engine.WaitSpill: "temporary files", engine.WaitCommit: "the log (COMMIT)", engine.WaitReplica: "a replica",
	engine.WaitClient: "the client", engine.WaitOther: "other waits"}

func printServerTime(p func(string, ...any), t *engine.ServerTime) {
	p("where the client's time went")
	line := func(name string, seconds float64) {
		if share := seconds / t.InFlight; share >= 0.005 || share <= -0.005 {
			p("  %s\t%s", name, sharePercent(share))
		}
	}
	line("network and driver", t.Network)
	line("waiting for a connection", t.Waiting)
	for _, class := range engine.WaitClasses() {
		line("server: "+classNames[class], t.Classes[class])
	}
	line("not explained", t.Remainder)
	if t.Unseen > 0 {
		p("  %s of the measurement were not seen", engine.Count(t.Unseen, "second"))
	}
	p("")
}

// findingLines are the findings of a summary in a line each, notes left out.
func findingLines(s *engine.Summary) (lines []string) {
	for _, f := range s.Findings {
		if f.Level != engine.LevelFinding {
			continue
		}
		lines = append(lines, terminal.OneLine(strings.TrimSpace(f.Title+": "+f.Text)))
	}
	return lines
}
