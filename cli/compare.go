package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
)

// compareCommand compares runs. Its exit code is a gate: 0 not worse, 3 worse,
// and with --require-clear 4 when a difference can be neither shown nor excluded.
type compareCommand struct {
	A            string  `arg:"" help:"Runs to compare with: ids, or files of run --out; several with commas."`
	B            string  `arg:"" help:"Runs to judge, likewise."`
	Tolerance    float64 `default:"5" placeholder:"PCT" help:"Smallest difference that matters, in percent."`
	RequireClear bool    `help:"Exit with 4 if the verdict is unclear."`
	Out          string  `aliases:"json" placeholder:"FILE" help:"Write the comparison as JSON (also --json); - is standard output."`
	CSV          string  `name:"csv" placeholder:"FILE" help:"Write the metrics as CSV, with all digits; - is standard output."`
	HTML         string  `name:"html" placeholder:"FILE" help:"Write a report with charts as one file; - is standard output. A and B are then ids of runs."`
	Server       string  `placeholder:"URL" env:"LOADSTONE_SERVER" help:"Server of the runs, instead of this machine's data directory."`
	tokenFlags
	wiring.StoreFlags
}

func (c *compareCommand) Run(e *terminal.Env) error {
	if math.IsNaN(c.Tolerance) || c.Tolerance < 0 || c.Tolerance > 1000 {
		return engine.InvalidField("--tolerance", fmt.Sprintf("%v is not a percentage", c.Tolerance),
			"give 0 to 1000, for example 5")
	}
	together := ComparisonReport{File: c.HTML, Tolerance: c.Tolerance, StoreFlags: c.StoreFlags}
	if err := together.SetRuns(c.A, c.B); err != nil {
		return err
	}
	if err := e.Claim(c.Out, c.CSV, c.HTML); err != nil {
		return err
	}
	from, read, done, err := c.source(e)
	if err != nil {
		return err
	}
	defer done()
	var sides [2][]compare.MeasuredRun
	for side, list := range [2]string{c.A, c.B} {
		for name := range strings.SplitSeq(list, ",") {
			r, err := from(strings.TrimSpace(name))
			if err != nil {
				return err
			}
			sides[side] = append(sides[side], compare.MeasuredRun{Summary: *r.Summary, Seconds: r.Seconds})
		}
	}
	o := compare.Defaults()
	o.TolerancePct = c.Tolerance
	result, err := compare.Between(sides[0], sides[1], o)
	if err != nil {
		return err
	}
	wrote := errors.Join(e.Write(c.Out, func(w io.Writer) error { return report.JSON(w, result) }),
		e.Write(c.CSV, func(w io.Writer) error { return report.ComparisonCSV(w, result) }))
	done() // the report opens the data directory itself
	wrote = errors.Join(wrote, together.Write(e, read))
	report.Comparison(e.Stdout, result)
	code := terminal.ExitPassed
	switch {
	case result.Verdict == compare.Worse:
		code = terminal.ExitThresholds
	case result.Verdict == compare.Unclear && c.RequireClear:
		code = terminal.ExitInvalid
	}
	return commandResult(code, wrote)
}

// source returns what reads a run by its name. The data directory is opened when the first id needs it.
func (c *compareCommand) source(e *terminal.Env) (from func(name string) (report.File, error), read ServerGet,
	done func(), err error) {
	var s *wiring.Services
	closed := func() {}
	done = func() {
		closed()
		s, closed = nil, func() {}
	}
	byID := func(id string) (report.File, error) {
		if s == nil {
			opened, end, err := OpenDataDir(e, c.StoreFlags)
			if err != nil {
				return report.File{}, err
			}
			s, closed = opened, end
		}
		detail, err := s.Runs.Detail(e.Ctx, id)
		if err != nil {
			return report.File{}, RunNotFound(id, err)
		}
		seconds, err := s.Runs.Seconds(e.Ctx, id)
		return report.FileOf(detail.Summary, seconds), err
	}
	if c.Server != "" {
		client, err := c.connect(c.Server)
		if err != nil {
			return nil, nil, nil, err
		}
		read = client.get
		byID = func(id string) (report.File, error) { return RunFile(e.Ctx, client.get, id) }
	}
	return func(name string) (report.File, error) {
		if name == "" {
			return report.File{}, &engine.Error{Code: engine.CodeInvalid, Message: "A side of the comparison names no run.",
				Hint: "give run ids or files, with commas between"}
		}
		switch info, err := os.Stat(name); {
		case err == nil && info.IsDir():
			return report.File{}, &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("%s is a folder.", name),
				Hint: "give a file that `loadstone run --out` wrote, or the id of a run"}
		case err == nil:
			return report.Read(name)
		case !errors.Is(err, fs.ErrNotExist):
			return report.File{}, terminal.UnreadableError("The report "+name, err)
		}
		if uuid.Validate(name) != nil {
			return report.File{}, &engine.Error{Code: engine.CodeInvalid,
				Message: fmt.Sprintf("There is no file %s, and it is not the id of a run.", name),
				Hint:    "give a file that `loadstone run --out` wrote, or an id of the form 0a1b2c3d-…"}
		}
		return byID(name)
	}, read, done, nil
}
