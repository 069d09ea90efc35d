package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/target"
)

// gateCommand measures a base and a candidate in turns until it is sure which is slower, or the budget ends. Its exit
// code is the gate: 0 not worse, 3 worse, 5 it cannot tell.
type gateCommand struct {
	Template string `arg:"" help:"The template of the base: a YAML or JSON file."`
	Other    string `arg:"" optional:"" name:"candidate-template" help:"The template of the candidate; without it that of the base."`

	Set           []string `placeholder:"PATH=VALUE" sep:"none" help:"Override a field on both sides: workload.concurrent_connections=32. Repeatable."`
	Base          []string `placeholder:"PATH=VALUE" sep:"none" help:"Override a field of the base: target.connection.dsn=postgres://…/main. Repeatable."`
	Candidate     []string `placeholder:"PATH=VALUE" sep:"none" help:"Override a field of the candidate. Repeatable."`
	SetFile       []string `placeholder:"PATH=FILE" sep:"none" help:"Override a field on both sides by the text of a file, for secrets. Repeatable."`
	BaseFile      []string `placeholder:"PATH=FILE" sep:"none" help:"Override a field of the base by the text of a file. Repeatable."`
	CandidateFile []string `placeholder:"PATH=FILE" sep:"none" help:"Override a field of the candidate by the text of a file. Repeatable."`

	BaseSQL          []string `name:"base-sql" placeholder:"SQL" sep:"none" help:"Statement for the target before each run of the base, such as DROP INDEX IF EXISTS …, and at the end. Repeatable."`
	CandidateSQL     []string `name:"candidate-sql" placeholder:"SQL" sep:"none" help:"Statement for the target before each run of the candidate. Repeatable."`
	BaseCommand      string   `placeholder:"COMMAND" help:"Shell command before each run of the base, and at the end: a git checkout, a container."`
	CandidateCommand string   `placeholder:"COMMAND" help:"Shell command before each run of the candidate."`

	MaxSlowdown  percent       `default:"3%" placeholder:"PCT" help:"Smallest slowdown that fails the gate, and within which both are the same."`
	Budget       time.Duration `default:"10m" placeholder:"DURATION" help:"How long to measure at most."`
	Round        time.Duration `default:"0s" placeholder:"DURATION" help:"How long each run measures; default: as the template says, at most 10 s."`
	Judge        []string      `placeholder:"METRIC" help:"Metrics that must be known: qps, p50_ms, p95_ms, p99_ms, error_rate; default: all but p99_ms."`
	Seed         uint64        `placeholder:"N" help:"Order of the runs; default: drawn, and printed."`
	AllowUnclear bool          `help:"Exit with 0 where the gate cannot tell."`

	Out         string   `placeholder:"FILE" help:"Write the result as JSON; - is standard output."`
	JUnit       string   `name:"junit" placeholder:"FILE" help:"Write the result as JUnit XML; - is standard output."`
	Markdown    string   `placeholder:"FILE" help:"Write the result as Markdown, for a summary of a CI job; - is standard output."`
	Server      string   `placeholder:"URL" env:"LOADSTONE_SERVER" help:"Run on this server instead of in this process."`
	AllowWrites bool     `help:"Let the runs write to tables that Loadstone did not make (target.allow_writes)."`
	Confirm     []string `name:"confirm-production" placeholder:"NAME" sep:"none" help:"With --server: name of a production connection that the runs may load. Repeatable."`
	Quiet       bool     `short:"q" help:"Show no progress."`
	tokenFlags
	wiring.StoreFlags
	wiring.TraceFlags
	wiring.CalibrateFlag
}

// percent is a percentage as people write it: 5, or 5%.
type percent float64

// UnmarshalText reads it.
func (p *percent) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(string(text)), "%")), 64)
	if err != nil || math.IsNaN(v) || v <= 0 || v > 1000 {
		return fmt.Errorf("%q is not a percentage above 0, such as 5%%", text)
	}
	*p = percent(v)
	return nil
}

// gateSide is the base or the candidate.
type gateSide struct {
	name     string
	source   []byte
	scenario engine.Scenario
	sql      []string
	command  string
}

const (
	// gateRound is how long a run of a gate measures at most where nobody says otherwise.
	gateRound = 10 * time.Second
	// gateOverhead is what a run takes beside its warm-up and measurement, at least: it prepares and ends.
	gateOverhead = time.Second
	// maxLeftOut is how many pairs in a row may be left out before the gate ends.
	maxLeftOut = 5
)

func (c *gateCommand) Run(e *terminal.Env) error {
	sides, err := c.sides()
	if err != nil {
		return err
	}
	options := compare.DefaultRoundOptions()
	options.LimitPct = float64(c.MaxSlowdown)
	if len(c.Judge) > 0 {
		options.Judged = c.Judge
	}
	for _, name := range options.Judged {
		if !slices.Contains(compare.RoundMetricNames(), name) {
			return engine.InvalidField("--judge", fmt.Sprintf("there is no metric %q", name),
				"choose of "+strings.Join(compare.RoundMetricNames(), ", "))
		}
	}
	if err := c.checkBudget(sides); err != nil {
		return err
	}
	if err := e.Claim(c.Out, c.JUnit, c.Markdown); err != nil {
		return err
	}
	where, done, err := c.place(e)
	if err != nil {
		return err
	}
	defer done()
	g := &gateLoop{c: c, e: e, sides: sides, where: where, options: options,
		seed: cmp.Or(c.Seed, rand.Uint64()>>12), began: time.Now(), show: report.NewProgress(e.Stderr)}
	err = g.measure()
	g.show.End()
	if err := errors.Join(err, g.takeBack()); err != nil {
		return err
	}
	result := g.result()
	wrote := errors.Join(
		e.Write(c.Out, func(w io.Writer) error { return report.JSON(w, result) }),
		e.Write(c.JUnit, func(w io.Writer) error { return report.GateJUnit(w, result) }),
		e.Write(c.Markdown, func(w io.Writer) error { return report.GateMarkdown(w, result) }),
	)
	report.Gate(e.Stdout, result)
	code := terminal.ExitPassed
	switch {
	case g.interrupted():
		code = terminal.ExitFailed
	case result.Verdict == report.GateWorse:
		code = terminal.ExitThresholds
	case result.Verdict == report.GateCannotTell && !c.AllowUnclear:
		code = terminal.ExitUnclear
	}
	return commandResult(code, wrote)
}

// sides reads the templates and applies what differs.
func (c *gateCommand) sides() (sides [2]*gateSide, err error) {
	base := &gateSide{name: "base", sql: c.BaseSQL, command: c.BaseCommand}
	candidate := &gateSide{name: "candidate", sql: c.CandidateSQL, command: c.CandidateCommand}
	for i, s := range []*gateSide{base, candidate} {
		run := runCommand{
			Template: c.Template,
			Set:      slices.Concat(c.Set, c.Base),
			SetFile:  slices.Concat(c.SetFile, c.BaseFile),
		}
		if i == 1 {
			run = runCommand{Template: cmp.Or(c.Other, c.Template), Set: slices.Concat(c.Set, c.Candidate),
				SetFile: slices.Concat(c.SetFile, c.CandidateFile)}
		}
		if run.Template == "-" {
			return sides, engine.InvalidField("template", "cannot come from standard input", "give a file")
		}
		source, err := run.source()
		if err != nil {
			return sides, err
		}
		if s.scenario, err = template.Parse(source); err != nil {
			return sides, template.WithoutLines(err)
		}
		if err := c.fit(s); err != nil {
			return sides, err
		}
		sides[i] = s
	}
	switch same := string(base.source) == string(candidate.source); {
	case same && slices.Equal(base.sql, candidate.sql) && base.command == candidate.command:
		return sides, &engine.Error{Code: engine.CodeInvalid, Message: "The base and the candidate are the same.",
			Hint: "say what differs: --candidate PATH=VALUE, --candidate-sql, --candidate-command, or a second template"}
	case (len(base.sql) == 0) != (len(candidate.sql) == 0):
		return sides, takeBackMissing("--base-sql", "--candidate-sql", "SELECT 1")
	case (base.command == "") != (candidate.command == ""):
		return sides, takeBackMissing("--base-command", "--candidate-command", "true")
	case c.Server != "" && len(base.sql)+len(candidate.sql) > 0:
		return sides, engine.InvalidField("--candidate-sql", "is for runs in this process",
			"with --server use --base-command and --candidate-command")
	}
	return sides, nil
}

// takeBackMissing refuses what would be done for one side only: the other one's runs would have it from then on.
func takeBackMissing(base, candidate, nothing string) error {
	return engine.InvalidField(candidate, fmt.Sprintf("is given without %s, or the other way around: each run of a side "+
		"finds what the one before has left", base), fmt.Sprintf("give both; where one side needs nothing, %q", nothing))
}

// fit makes a template a run of the gate: of its length, and without what judges a single run.
func (c *gateCommand) fit(s *gateSide) error {
	w := &s.scenario.Workload
	switch {
	case s.scenario.Matrix != nil:
		return engine.InvalidField(
			"matrix",
			"a gate compares two sides",
			"leave matrix out, and give the other target by --candidate",
		)
	case w.LoadMode == engine.LoadFindMax:
		return engine.InvalidField("workload.load_mode", "a gate holds figures at one load against each other",
			"use CONCURRENCY or QPS")
	case c.Round < 0 || c.Round > 0 && c.Round < 2*time.Second:
		return engine.InvalidField("--round", "is too short to measure", "give 2s or more")
	}
	w.DurationSeconds = cmp.Or(c.Round, min(w.Duration(), gateRound)).Seconds()
	s.scenario.Thresholds = nil
	if c.AllowWrites {
		s.scenario.AllowWrites()
	}
	var err error
	if s.source, err = json.Marshal(s.scenario); err != nil {
		return fmt.Errorf("writing the template: %w", err)
	}
	return template.Check(s.scenario)
}

// length is how long a run of a side takes at least.
func (s *gateSide) length() time.Duration {
	return s.scenario.Workload.Warmup() + s.scenario.Workload.Duration() + gateOverhead
}

// checkBudget refuses a budget in which nothing can be judged.
func (c *gateCommand) checkBudget(sides [2]*gateSide) error {
	// A pair more than are judged: the first warms up both sides.
	if least := (compare.MinRounds + 1) * (sides[0].length() + sides[1].length()); c.Budget < least {
		return engine.InvalidField("--budget", fmt.Sprintf("%v is too short: %d pairs of runs take %v at least", c.Budget,
			compare.MinRounds+1, least), fmt.Sprintf("give --budget %v or more, or a shorter --round", 2*least))
	}
	return nil
}

// gatePlace is where the runs take place: in this process, or on a server.
type gatePlace interface {
	run(e *terminal.Env, s *gateSide) (*engine.RunDetail, error)
	exec(ctx context.Context, s *gateSide) error
}

func (c *gateCommand) place(e *terminal.Env) (gatePlace, func(), error) {
	e.Settle()
	run := &runCommand{
		Server:        c.Server,
		Confirm:       c.Confirm,
		Quiet:         true,
		tokenFlags:    c.tokenFlags,
		StoreFlags:    c.StoreFlags,
		TraceFlags:    c.TraceFlags,
		CalibrateFlag: c.CalibrateFlag,
	}
	if c.Server != "" {
		if len(c.Plugin) > 0 {
			return nil, nil, engine.InvalidField(
				"--plugin",
				"loads a plugin into this process; the runs of --server take place there",
				"upload it with loadstone plugin upload",
			)
		}
		client, err := c.connect(c.Server)
		return remoteGate{run, client}, func() {}, err
	}
	s, done, err := run.open(e)
	return localGate{run, s}, done, err
}

type localGate struct {
	c *runCommand
	s *wiring.Services
}

func (l localGate) run(e *terminal.Env, side *gateSide) (*engine.RunDetail, error) {
	_, ended, err := l.c.once(e, l.s, side.scenario)
	return ended, err
}

// exec runs the side's SQL on its target.
func (l localGate) exec(ctx context.Context, side *gateSide) error {
	if len(side.sql) == 0 {
		return nil
	}
	name, dsn, err := l.s.Store.OpenDSN(ctx, side.scenario.Target.Ref())
	if err != nil {
		return fmt.Errorf("opening the connection: %w", err)
	}
	driver := l.s.Drivers[name]
	if driver == nil {
		return engine.InvalidField("target.connection.driver", fmt.Sprintf("there is no driver %q", name), "")
	}
	db, err := driver.Open(target.Config{DSN: dsn, ApplicationName: "loadstone gate"})
	if err != nil {
		return fmt.Errorf("opening the target: %w", err)
	}
	defer func() { _ = db.Close() }()
	if err := db.Exec(ctx, side.sql...); err != nil {
		return fmt.Errorf("executing --%s-sql: %w", side.name, err)
	}
	return nil
}

type remoteGate struct {
	c      *runCommand
	client *client
}

func (r remoteGate) run(e *terminal.Env, side *gateSide) (*engine.RunDetail, error) {
	var run engine.Run
	if err := r.client.do(e.Ctx, http.MethodPost, "/api/runs", r.c.started(side.source), &run); err != nil {
		return nil, err
	}
	return r.client.follow(e, run.RunID, true)
}

func (remoteGate) exec(context.Context, *gateSide) error { return nil }

// gateLoop is a gate under way.
type gateLoop struct {
	c       *gateCommand
	e       *terminal.Env
	sides   [2]*gateSide
	where   gatePlace
	options compare.RoundOptions
	seed    uint64
	began   time.Time
	show    *report.Progress

	rounds  []compare.Round
	runs    []report.GateRun
	leftOut []string
	ended   string // why it ended before it was sure
	failed  string // of a candidate whose runs fail
	// failures of the candidate, one after the other.
	failures int
	longest  time.Duration
}

// order draws the sides of the pairs: of two pairs one begins with the base and one with the candidate, so that what
// changes steadily with time is in none of them.
func (g *gateLoop) order() func() (candidateFirst bool) {
	rng, next := rand.New(rand.NewPCG(g.seed, 46)), []bool{}
	return func() bool {
		if len(next) == 0 {
			first := rng.IntN(2) == 1
			next = []bool{first, !first}
		}
		first := next[0]
		next = next[1:]
		return first
	}
}

// interrupted: somebody wants no more runs.
func (g *gateLoop) interrupted() bool { return g.e.Ctx.Err() != nil }

// measure measures pairs until the verdict is sure, or the budget ends.
func (g *gateLoop) measure() error {
	order := g.order()
	for pair := 0; g.failed == ""; pair++ {
		if time.Since(g.began)+g.longest > g.c.Budget {
			g.ended = "the budget has ended"
			return nil
		}
		began, candidateFirst := time.Now(), order()
		round, why, err := g.pair(pair, candidateFirst)
		if err != nil {
			return err
		}
		g.longest = max(g.longest, time.Since(began))
		switch {
		case g.interrupted():
			g.ended = "it was interrupted"
			return nil
		case pair == 0: // it has warmed up both sides
			continue
		case why != "":
			if g.leftOut = append(g.leftOut, why); len(g.leftOut) >= maxLeftOut && len(g.leftOut) > len(g.rounds) {
				g.ended = "too many pairs had to be left out"
				return nil
			}
			continue
		}
		g.rounds = append(g.rounds, round)
		judged := compare.JudgeRounds(g.rounds, g.options)
		if !g.c.Quiet {
			g.show.Line("%s", report.GateSoFar(judged, g.options))
		}
		if judged.Verdict != compare.Unclear || judged.Drift != "" {
			return nil
		}
	}
	return nil
}

// pair measures both sides. why says why the pair tells nothing.
func (g *gateLoop) pair(number int, candidateFirst bool) (round compare.Round, why string, err error) {
	round.BFirst = candidateFirst
	order := []int{0, 1}
	if candidateFirst {
		order = []int{1, 0}
	}
	for _, i := range order {
		s := g.sides[i]
		if err := g.setUp(i); g.interrupted() {
			return round, "", nil
		} else if err != nil {
			return round, "", err
		}
		detail, err := g.where.run(g.e, s)
		if err != nil {
			return round, "", fmt.Errorf("the %s: %w", s.name, err)
		}
		if g.interrupted() {
			return round, "", nil
		}
		sum := detail.Summary
		g.runs = append(g.runs, report.GateRunOf(number, s.name, sum))
		if failure := gateFailure(detail); failure != "" {
			return round, fmt.Sprintf("pair %d, %s: %s", number, s.name, failure), g.fails(i, detail, failure)
		}
		if i == 1 {
			g.failures = 0
		}
		if !g.c.Quiet {
			g.show.Line("%s", report.GateRunLine(number, s.name, sum))
		}
		if cause := unusable(sum); cause != "" && why == "" {
			why = fmt.Sprintf("pair %d, %s: %s", number, s.name, cause)
		}
		if i == 0 {
			round.A = sum.Figures
		} else {
			round.B = sum.Figures
		}
	}
	return round, why, nil
}

// fails takes a run without figures. One of the candidate that fails for the second time in a row makes it worse; a run
// that somebody has stopped says nothing of anybody.
func (g *gateLoop) fails(side int, d *engine.RunDetail, why string) error {
	var message string
	switch {
	case d.Status == engine.StatusCancelled:
		message = fmt.Sprintf("The run of the %s was stopped, and with it the gate: %s", g.sides[side].name, why)
	case side == 0:
		message = "The run of the base failed, so there is nothing to hold the candidate against: " + why
	default:
		if g.failures++; g.failures > 1 {
			g.failed = why
		}
		return nil
	}
	return &terminal.ExitError{Code: terminal.ExitFailed, Err: &engine.Error{Code: engine.CodeTarget, Message: message}}
}

// gateFailure says in a sentence why a run has no figures that could be compared, empty where it has.
func gateFailure(d *engine.RunDetail) string {
	switch s := d.Summary; {
	case s == nil:
		return fmt.Sprintf("it ended as %s.", strings.ToLower(string(d.Status)))
	case s.Status != engine.StatusCompleted && s.CancellationReason != nil:
		return *s.CancellationReason
	case s.Status != engine.StatusCompleted:
		return fmt.Sprintf("it ended as %s.", strings.ToLower(string(s.Status)))
	case !s.HasSuccess():
		return "no operation succeeded."
	}
	return ""
}

// unusable says why a completed run says nothing about its side: the generator or the record stood in the way. What
// both sides have alike, as a busy machine, is in the scatter of the rounds.
func unusable(s *engine.Summary) string {
	for _, cause := range s.ValidityDetail.Causes {
		switch cause.Cause {
		case engine.CauseSnapshotGap, engine.CauseLostWorker, engine.CauseClockStep, engine.CauseIncompleteRecord,
			engine.CauseNothingMeasured:
			return cause.Detail
		}
	}
	return ""
}

// takeBackLimit bounds the base's set-up at the end, so that a slow statement does not hold up an interrupted gate.
const takeBackLimit = time.Minute

// takeBack leaves the target as the base's, also after an error and an interrupt.
func (g *gateLoop) takeBack() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.e.Ctx), takeBackLimit)
	defer cancel()
	if err := g.setUpWithin(ctx, 0); err != nil {
		return fmt.Errorf("taking back what the candidate changed: %w", err)
	}
	return nil
}

// setUp makes the target that of a side. It ends with the gate, and with the budget.
func (g *gateLoop) setUp(i int) error {
	ctx, cancel := context.WithTimeout(g.e.Ctx, g.c.Budget)
	defer cancel()
	return g.setUpWithin(ctx, i)
}

func (g *gateLoop) setUpWithin(ctx context.Context, i int) error {
	s := g.sides[i]
	if err := g.where.exec(ctx, s); err != nil {
		return err
	}
	if s.command == "" {
		return nil
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", s.command)
	cmd.WaitDelay = time.Second // what it has started may keep its output open
	cmd.Stdout, cmd.Stderr = g.e.Stderr, g.e.Stderr
	cmd.Env = append(os.Environ(), "LOADSTONE_GATE_SIDE="+s.name)
	if err := cmd.Run(); err != nil {
		return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("The command of --%s-command failed: %v.", s.name,
			cmp.Or(context.Cause(ctx), err)), Hint: "its output stands above", Cause: err}
	}
	return nil
}

// result is what the gate has found.
func (g *gateLoop) result() report.GateResult {
	r := report.GateResult{Template: g.sides[0].scenario.Name, Seed: g.seed, MaxSlowdownPct: g.options.LimitPct,
		BudgetSeconds: g.c.Budget.Seconds(), TookSeconds: time.Since(g.began).Seconds(), LeftOut: g.leftOut, Runs: g.runs,
		Rounds: compare.JudgeRounds(g.rounds, g.options)}
	r.Conclude(g.failed, g.ended)
	return r
}
