package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/compare"
)

// compareCommand compares runs. Its exit code is a gate: 0 not worse, 3 worse,
// and with --require-clear 4 when a difference can be neither shown nor excluded.
type compareCommand struct {
	A            string  `arg:"" help:"The runs to compare with: ids, or files that run --out wrote; several with commas between."`
	B            string  `arg:"" help:"The runs to judge, likewise."`
	Tolerance    float64 `default:"5" placeholder:"PCT" help:"The least difference that matters, in percent."`
	RequireClear bool    `help:"Exit with 4 when the verdict is unclear."`
	Out          string  `placeholder:"FILE" help:"Write the comparison as JSON; - is standard output."`
	Server       string  `placeholder:"URL" env:"LOADSTONE_SERVER" help:"The server that has the runs, instead of this machine's data directory."`
	tokenFlags
	storeFlags
}

// written is what run --out writes: the summary, and what a comparison needs.
type written struct {
	*engine.Summary
	Seconds []engine.MeasuredSecond `json:"seconds,omitempty"`
	// Enrichment is what the target's history knew when the file was written; nil where there is none.
	Enrichment *engine.Enrichment `json:"enrichment,omitempty"`
}

func (c *compareCommand) Run(e *env) error {
	if math.IsNaN(c.Tolerance) || c.Tolerance < 0 || c.Tolerance > 1000 {
		return engine.InvalidField("--tolerance", fmt.Sprintf("%v is not a percentage", c.Tolerance),
			"give 0 to 1000, for example 5")
	}
	if err := e.claim(c.Out); err != nil {
		return err
	}
	from, done, err := c.source(e)
	if err != nil {
		return err
	}
	defer done()
	var sides [2][]compare.Measured
	for side, list := range [2]string{c.A, c.B} {
		for name := range strings.SplitSeq(list, ",") {
			r, err := from(strings.TrimSpace(name))
			if err != nil {
				return err
			}
			sides[side] = append(sides[side], compare.Measured{Summary: *r.Summary, Seconds: r.Seconds})
		}
	}
	o := compare.Defaults()
	o.TolerancePct = c.Tolerance
	result, err := compare.Runs(sides[0], sides[1], o)
	if err != nil {
		return err
	}
	wrote := e.write(c.Out, func(w io.Writer) error { return printJSON(w, result) })
	printComparison(e.stdout, result)
	code := exitPassed
	switch {
	case result.Verdict == compare.Worse:
		code = exitThresholds
	case result.Verdict == compare.Unclear && c.RequireClear:
		code = exitInvalid
	}
	return verdict(code, wrote)
}

// source returns what reads a run by its name. The data directory is opened when the first id needs it.
func (c *compareCommand) source(e *env) (from func(name string) (written, error), done func(), err error) {
	var s *services
	done = func() {
		if s == nil {
			return
		}
		closing, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), time.Minute)
		defer cancel()
		if err := s.Close(closing); err != nil {
			e.log.Warn().Err(err).Msg("closing")
		}
	}
	byID := func(id string) (written, error) {
		if s == nil {
			flags := c.storeFlags
			if flags.DataDir == "" {
				flags.DataDir = defaultDataDir()
			}
			if s, err = assemble(e.ctx, flags, false, zerolog.Nop()); err != nil {
				return written{}, err
			}
		}
		detail, err := s.runs.Detail(e.ctx, id)
		if err != nil {
			return written{}, err
		}
		seconds, err := s.runs.Seconds(e.ctx, id)
		return reportOf(detail.Summary, seconds), err
	}
	if c.Server != "" {
		client, err := c.connect(c.Server)
		if err != nil {
			return nil, nil, err
		}
		byID = func(id string) (written, error) { return client.report(e.ctx, id) }
	}
	return func(name string) (written, error) {
		if name == "" {
			return written{}, &engine.Error{Code: engine.CodeInvalid, Message: "A side of the comparison names no run.",
				Hint: "give run ids or files, with commas between"}
		}
		switch info, err := os.Stat(name); {
		case err == nil && info.IsDir():
			return written{}, &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("%s is a folder.", name),
				Hint: "give a file that `loadstone run --out` wrote, or the id of a run"}
		case err == nil:
			return readReport(name)
		case !errors.Is(err, fs.ErrNotExist):
			return written{}, unreadable("The report "+name, err)
		}
		if uuid.Validate(name) != nil {
			return written{}, &engine.Error{Code: engine.CodeInvalid,
				Message: fmt.Sprintf("There is no file %s, and it is not the id of a run.", name),
				Hint:    "give a file that `loadstone run --out` wrote, or an id of the form 0a1b2c3d-…"}
		}
		return byID(name)
	}, done, nil
}

func reportOf(s *engine.Summary, seconds []engine.MeasuredSecond) written {
	if s == nil {
		s = &engine.Summary{}
	}
	return written{Summary: s, Seconds: seconds}
}

func (c *client) report(ctx context.Context, id string) (written, error) {
	path := "/api/runs/" + url.PathEscape(id)
	var s engine.Summary
	if err := c.do(ctx, http.MethodGet, path+"/summary", nil, &s); err != nil {
		return written{}, err
	}
	var list struct {
		Seconds []engine.MeasuredSecond `json:"seconds"`
	}
	if err := c.do(ctx, http.MethodGet, path+"/seconds", nil, &list); err != nil {
		return written{}, err
	}
	return reportOf(&s, list.Seconds), nil
}

// maxReport is the most that a report is read of: the seconds of a week are a tenth of it.
const maxReport = 1 << 30

func readReport(path string) (written, error) {
	fail := func(format string, args ...any) (written, error) {
		return written{}, &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The file %s ", path) + fmt.Sprintf(format, args...) + ".",
			Hint:    "give a file that `loadstone run --out` wrote"}
	}
	text, err := readBounded("The report", path, maxReport)
	if err != nil {
		return written{}, err
	}
	r := written{Summary: &engine.Summary{}}
	if err := engine.ReadJSON(text, &r); err != nil {
		return fail("is not a summary: %v", err)
	}
	if r.RunID == "" {
		return fail("is not a summary of a run")
	}
	for i, s := range r.Seconds {
		if s.Operations < 0 || s.Errors < 0 || s.Errors > s.Operations {
			return fail("is damaged: second %d has %d operations and %d errors", i+1, s.Operations, s.Errors)
		}
	}
	return r, nil
}

// printComparison writes a comparison for a person.
func printComparison(out io.Writer, c compare.Comparison) {
	notes := c.Notes
	if c.Simulated && len(notes) > 0 {
		// The first note says whose figures these are not: nobody shall read a figure before it.
		_, _ = fmt.Fprintf(out, "%s\n\n", shown(notes[0]))
		notes = notes[1:]
	}
	head := func(side, standIn string) string {
		if standIn == "" {
			return side
		}
		return fmt.Sprintf("%s (%s)", side, standIn)
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "metric\t%s\t%s\tverdict\t  \t\n", head("A", c.StandIn.A), head("B", c.StandIn.B))
	show := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return fmt.Sprintf("%.4g", *v)
	}
	for _, m := range c.Metrics {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t  %s\n", m.Name, show(m.A), show(m.B), m.Verdict, m.Reason)
	}
	_ = w.Flush() // the terminal's trouble
	if c.SlowerProbability != nil {
		_, _ = fmt.Fprintf(out, "\nAn operation of B took longer than one of A with a probability of %.3f (0.5: neither).\n",
			*c.SlowerProbability)
	}
	for _, n := range notes {
		_, _ = fmt.Fprintf(out, "note: %s\n", shown(n))
	}
	if c.SameRun {
		return // the note says it all
	}
	by := ""
	if c.Simulated {
		by = ", by figures of a stand-in"
	}
	_, _ = fmt.Fprintf(out, "\nB is %s%s.\n",
		map[compare.Verdict]string{compare.Better: "better", compare.Worse: "worse", compare.Same: "the same",
			compare.Unclear: "neither shown to be better nor worse"}[c.Verdict], by)
}
