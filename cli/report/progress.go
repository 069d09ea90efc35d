package report

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// Progress shows a live run: one line that is rewritten on a terminal, a line
// every few seconds elsewhere, and the run's own warnings as they come.
type Progress struct {
	w       *terminal.Screen
	phase   engine.Phase
	last    time.Time
	lastSeq int64
	steps   int // of a search, that were printed
}

// NewProgress shows a run on w, which a log may share.
func NewProgress(w io.Writer) *Progress {
	shared, ok := w.(*terminal.Screen)
	if !ok {
		shared = terminal.NewScreen(w)
	}
	return &Progress{w: shared}
}

// Show shows where the run is now.
func (p *Progress) Show(u *engine.LiveState) {
	for _, entry := range u.Logs {
		if entry.Seq <= p.lastSeq {
			continue
		}
		p.lastSeq = entry.Seq
		if entry.Level != engine.LogInfo {
			p.Line("  %s: %s", strings.ToLower(string(entry.Level)), terminal.Shown(entry.Message))
		}
	}
	if f := u.FindMax; f != nil {
		for ; p.steps < len(f.Steps); p.steps++ {
			p.Line("%s", stepLine(f.Steps[p.steps], terminal.Unbounded))
		}
	}
	phase := engine.PhaseNone
	if u.Phase != nil {
		phase = *u.Phase
	}
	if phase == engine.PhaseNone && u.Status.Terminal() {
		return // the summary says it
	}
	changed := phase != p.phase
	p.phase = phase
	if p.w.Terminal {
		if changed {
			p.w.Keep()
		}
		p.w.Status(terminal.OneLine(statusLine(u, phase, p.w.Columns())))
		return
	}
	if changed || time.Since(p.last) >= 2*time.Second {
		p.last = time.Now()
		p.Line("%s", statusLine(u, phase, terminal.Unbounded))
	}
}

// Line prints a whole line, after the status line.
func (p *Progress) Line(format string, args ...any) {
	p.w.Keep()
	_, _ = fmt.Fprintln(p.w, terminal.StripControls(fmt.Sprintf(format, args...)))
}

// Waiting says what a run waits for, nil when it does not, unless that was said last; it returns what was said last.
func (p *Progress) Waiting(w *engine.Waiting, message string) string {
	if w == nil || w.Reason == message {
		return message
	}
	p.Line("The run %s.", w.Reason)
	return w.Reason
}

// End leaves the last line as it stands.
func (p *Progress) End() { p.w.Keep() }

// statusLine says in one line of at most columns characters where a run is.
func statusLine(u *engine.LiveState, phase engine.Phase, columns int) string {
	switch phase {
	case engine.PhasePreparing:
		if pr := u.Prepare; pr != nil {
			if pr.RowsTotal > 0 && pr.Step == "connect" {
				return fmt.Sprintf("preparing    %s: %s of %s", pr.Message, terminal.Count(pr.RowsDone),
					terminal.Count(pr.RowsTotal))
			}
			if pr.RowsTotal > 0 {
				return fmt.Sprintf("preparing    %s: %s of %s rows, %s/s", pr.Message, terminal.Count(pr.RowsDone),
					terminal.Count(pr.RowsTotal),
					terminal.Rate(pr.RowsPerSecond))
			}
			if pr.Message != "" {
				return "preparing    " + pr.Message
			}
		}
		return "preparing    the target"
	case engine.PhaseWarmup, engine.PhaseMeasurement:
		if u.FindMax != nil && phase == engine.PhaseMeasurement {
			return searching(u.FindMax, columns)
		}
		name, total := "warming up", u.Timing.WarmupSeconds
		if phase == engine.PhaseMeasurement {
			name, total = "measuring", u.Timing.DurationSeconds
		}
		clock := ""
		if elapsed := u.Timing.PhaseElapsedSeconds; elapsed != nil {
			clock = fmt.Sprintf("%s / %s", terminal.Duration(*elapsed), terminal.Duration(total))
		}
		return fitParts(columns, []linePart{
			{0, fmt.Sprintf("%-11s  %s", name, clock)},
			{1, fmt.Sprintf("%6s op/s", terminal.Rate(u.Ops.CurrentPerSec))},
			{4, fmt.Sprintf("P50 %-8s", terminal.MillisOrNone(u.Latency.P50))},
			{2, fmt.Sprintf("P95 %-8s", terminal.MillisOrNone(u.Latency.P95))},
			{5, fmt.Sprintf("P99 %-8s", terminal.MillisOrNone(u.Latency.P99))},
			{3, "errors " + terminal.Count(u.Errors.Count)},
			{6, fmt.Sprintf("connections %d/%d", u.Connections.Active, u.Connections.Target)},
		})
	case engine.PhaseCooldown:
		return fmt.Sprintf("stopping     %d connections still at work", u.Connections.Active)
	case engine.PhaseProcessing:
		return "processing   reading every execution for the exact figures"
	default:
		return strings.ToLower(string(u.Status))
	}
}

// linePart is a piece of a line; that of the highest rank is left out first.
type linePart struct {
	rank int
	text string
}

// fitParts joins as many parts as columns allow; that of rank 0 always stays.
func fitParts(columns int, parts []linePart) string {
	for rank := len(parts) - 1; ; rank-- {
		var kept []string
		for _, p := range parts {
			if p.rank <= rank {
				kept = append(kept, p.text)
			}
		}
		line := strings.TrimRight(strings.Join(kept, "   "), " ")
		if rank <= 0 || utf8.RuneCountInString(line) <= columns {
			return line
		}
	}
}
