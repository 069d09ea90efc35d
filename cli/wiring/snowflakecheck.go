//go:build !nosnowflake

package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/analytics/snowflakeexport"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/enrich"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
	"github.com/loadstone-db/loadstone/plugins/bundled"
)

// checkedType is a type of table of which the check makes a run.
type checkedType struct {
	name, weights string
	// after is the assumption without which there is nothing to run.
	after string
	// knows is what the history is assumed to know of the run.
	knows string
}

var checkedTypes = []checkedType{
	{"standard", "{POINT_LOOKUP: 4, RANGE_SCAN: 1, INSERT: 1, UPDATE: 1}", "standard.create",
		"The history knows executions of a run on a standard table."},
	{"hybrid", "{POINT_LOOKUP: 4, RANGE_SCAN: 1, INSERT: 1, UPDATE: 1, DELETE: 1}", "hybrid.create",
		"The history can be asked about a run on a hybrid table, of which it leaves short queries out."},
	{"interactive", "{POINT_LOOKUP: 4, RANGE_SCAN: 1}", "interactive.create",
		"The history can be asked about a run on an interactive table, of which it leaves short queries out."},
}

// checkedRun is the template of a run. The second one of a type makes the table anew in the place of the first, and has
// its rows copied and not made by the account.
func (t checkedType) template(dsn, table, warehouse string, second bool) ([]byte, error) {
	quoted, err := json.Marshal(dsn)
	if err != nil {
		return nil, fmt.Errorf("writing the connection: %w", err)
	}
	load, params := "auto", map[string]any{}
	if second {
		load = "copy"
		if t.name == "interactive" {
			params["load_warehouse"] = warehouse
		}
	}
	written, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("writing the parameters: %w", err)
	}
	return fmt.Appendf(nil, "name: snowflake check, %s\ntarget:\n  connection: {driver: snowflake, dsn: %s}\n"+
		"  adapter: snowflake_%s\n  table_name: %s\n  params: %s\n"+
		"  prepare: {rows: 1000, if_exists: recreate, load: %s}\n"+
		"workload:\n  plugin: mix\n  params: {weights: %s, scan_length: 20}\n  concurrent_connections: 2\n"+
		"  warmup_seconds: 0\n  duration_seconds: 3\n"+
		"scaling: {mode: FIXED, worker_count: 1, per_worker_capacity: 2}\n",
		t.name, quoted, t.name, table, written, load, t.weights), nil
}

// How long each part of a check may take on an account.
const (
	checkedRunTimeout    = 4 * time.Minute
	checkedExportTimeout = 3 * time.Minute
)

// checkedHistory is how the history is asked in a check: a minute says whether it can be.
var checkedHistory = enrich.Policy{PageSize: 10_000, Interval: 3 * time.Second, Timeout: 30 * time.Second,
	TargetRatio: 0.9, MaxStuckPolls: 3, StuckRatio: 0.5}

// accountCheck is a check under way.
type accountCheck struct {
	AccountCheck
	*snowflake.Checker
	s    *Services
	seen *seenStatements
	// runs are the last ones of each type, as far as they ended well.
	runs map[string]string
}

// CheckAccount asks an account whether what Loadstone assumes of it holds: by statements, by small runs on each type of
// table, by its history, and by taking a run there and reading it back.
func CheckAccount(ctx context.Context, o AccountCheck) (AccountFindings, error) {
	checker, err := snowflake.NewChecker(ctx, o.Database)
	if err != nil {
		return AccountFindings{}, err
	}
	c := &accountCheck{AccountCheck: o, Checker: checker, seen: &seenStatements{}, runs: map[string]string{}}
	c.tell("Asking statement by statement.")
	if err = c.Probe(ctx); err == nil {
		err = c.withRuns(ctx)
	}
	c.Clean(ctx)
	if err != nil {
		return AccountFindings{}, err
	}
	found := c.Result()
	return AccountFindings{Text: found.JSON(), Summary: found.Summary(),
		Conforms: found.Count(snowflake.NotHeld) == 0}, nil
}

func (c *accountCheck) tell(format string, args ...any) {
	if c.Progress != nil {
		c.Progress(fmt.Sprintf(format, args...))
	}
}

// withRuns asks by runs, which this process carries with a control store of its own.
func (c *accountCheck) withRuns(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "loadstone-check-")
	if err != nil {
		return fmt.Errorf("making a folder for the runs of the check: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	o := c.Options
	o.Store = StoreFlags{DataDir: dir}
	o.Log, o.Enrichment = zerolog.Nop(), checkedHistory
	if c.s, err = Open(ctx, o); err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = c.s.Close(closing) // nothing of it is kept
	}()
	driver := snowflake.Observe(snowflake.NewDriver(), c.seen.tell)
	c.s.Drivers[driver.Name()] = driver
	for _, t := range checkedTypes {
		if err := c.ofType(ctx, t); err != nil {
			return err
		}
	}
	for _, t := range checkedTypes {
		if err := c.enriched(ctx, t); err != nil {
			return err
		}
	}
	if err := c.adapters(ctx); err != nil {
		return err
	}
	return c.exported(ctx)
}

// ofType checks a type of table with two runs: the first creates the table, the second replaces it.
func (c *accountCheck) ofType(ctx context.Context, t checkedType) error {
	table, after := c.Table("RUN_"+strings.ToUpper(t.name)), t.after
	c.Table("RUN_" + strings.ToUpper(t.name) + "__LOADSTONE_NEW")
	c.Table("RUN_" + strings.ToUpper(t.name) + "__LOADSTONE_STAGE")
	for _, step := range []struct {
		id, sentence string
		second       bool
	}{
		{t.name + ".run", "A run makes and loads a table (" + t.name + "), and its operations succeed.", false},
		{t.name + ".recreate", "A run makes the table (" + t.name + ") anew, from rows that are copied.", true},
	} {
		c.tell("Run on a table: %s.", t.name)
		if err := c.Ask(ctx, snowflake.Assumption{ID: step.id, Sentence: step.sentence}, after, checkedRunTimeout,
			func(ctx context.Context) (bool, string, error) { return c.run(ctx, t, table, step.second) }); err != nil {
			return err
		}
		after = step.id
	}
	return c.Ask(ctx, snowflake.Assumption{ID: t.name + ".polls", Sentence: "The warehouse of a run is polled."},
		t.name+".run", time.Minute, func(ctx context.Context) (bool, string, error) {
			d, err := c.s.Runs.Detail(ctx, c.runs[t.name])
			if err != nil {
				return false, "", err
			}
			cost := d.Summary != nil && d.Summary.Cost != nil
			return cost, word(!cost, "no poll of the warehouse has succeeded"), nil
		})
}

func word(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// run carries one run, and asks what became of it.
func (c *accountCheck) run(ctx context.Context, t checkedType, table string, second bool) (bool, string, error) {
	rs, err := c.Database.Query(ctx, "SELECT CURRENT_WAREHOUSE()")
	if err != nil {
		return false, "", err
	}
	text, err := t.template(c.DSN.Reveal(), table, fmt.Sprint(rs.Rows[0][0]), second)
	if err != nil {
		return false, "", err
	}
	scenario, err := template.Parse(text)
	if err != nil {
		return false, "", err
	}
	run, err := c.s.Runs.Create(ctx, scenario, engine.Actor{Name: "cli"})
	if err != nil {
		return false, "", err
	}
	if _, err = c.s.Runs.Start(ctx, run.RunID, "cli"); err != nil {
		return false, "", err
	}
	sum, err := c.s.Runs.Wait(ctx, run.RunID)
	if err != nil {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_, _ = c.s.Runs.Stop(stopping, run.RunID, "cli") // it is ended with the process at the latest
		return false, "", &snowflake.UncheckedError{Why: "the run did not end in " + checkedRunTimeout.String()}
	}
	if sum.Status != engine.StatusCompleted {
		why := "the run is " + string(sum.Status)
		if sum.CancellationReason != nil {
			why += ": " + c.Hide(*sum.CancellationReason)
		}
		return false, why, nil
	}
	if !second {
		c.runs[t.name] = run.RunID
	}
	// Writers of a standard table wait for each other, and some do in vain.
	failed, classes := sum.Errors.Count, []string{}
	for class, n := range sum.Errors.ByClass {
		if class == engine.ErrClassLock && t.name == "standard" {
			failed -= n
			continue
		}
		classes = append(classes, string(class))
	}
	slices.Sort(classes)
	return failed == 0 && sum.Operations > 0, word(failed > 0, "executions failed: "+strings.Join(classes, ", ")) +
		word(sum.Operations == 0, "nothing was executed"), nil
}

// enriched asks what the history knows of a run.
func (c *accountCheck) enriched(ctx context.Context, t checkedType) error {
	c.tell("History of the run: %s.", t.name)
	return c.Ask(ctx, snowflake.Assumption{ID: t.name + ".enrichment", Sentence: t.knows}, t.name+".run",
		2*time.Minute, func(ctx context.Context) (bool, string, error) {
			for {
				e, err := c.s.EnrichmentOf(ctx, c.runs[t.name])
				if err != nil {
					return false, "", err
				}
				switch {
				case e.Status == engine.EnrichmentSkipped:
					return false, "", &snowflake.UncheckedError{Why: e.Reason}
				case e.Status == engine.EnrichmentFailed:
					return false, c.Hide(e.Reason), nil
				case e.Status.Terminal():
					held := t.name != "standard" || e.Matched > 0
					return held, word(!held, "no execution was found in the history"), nil
				}
				select {
				case <-ctx.Done():
					return false, "", &snowflake.UncheckedError{Why: "the history gave no answer in time"}
				case <-time.After(200 * time.Millisecond):
				}
			}
		})
}

// seenStatements are what an account was given.
type seenStatements struct {
	mu sync.Mutex
	// outcomes are by text; nil is that of one that was executed at least once.
	outcomes map[string]error
}

// mostSeen bounds them: the check's own runs have a few hundred.
const mostSeen = 5000

func (s *seenStatements) tell(sql string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outcomes == nil {
		s.outcomes = map[string]error{}
	}
	before, there := s.outcomes[sql]
	if there && before == nil || !there && len(s.outcomes) >= mostSeen {
		return
	}
	s.outcomes[sql] = err
}

// among is what became of those for which is is true: whether one was executed, or else what one was refused with.
func (s *seenStatements) among(c *snowflake.Checker, is func(sql string) bool) (executed bool, refused error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sql, err := range s.outcomes {
		if !is(sql) {
			continue
		}
		if err == nil {
			return true, nil
		}
		if refused == nil || c.Answers(err) {
			refused = err
		}
	}
	return false, refused
}

// statement notes whether the account has executed one of the statements that the runs have sent.
func (c *accountCheck) statement(ctx context.Context, id, sentence string, is func(sql string) bool) error {
	return c.Ask(ctx, snowflake.Assumption{ID: id, Sentence: sentence}, "", time.Minute,
		func(context.Context) (bool, string, error) {
			executed, refused := c.seen.among(c.Checker, is)
			if !executed && refused == nil {
				refused = &snowflake.UncheckedError{Why: "the runs of the check did not send it"}
			}
			return executed, "", refused
		})
}

// adapters asks of each statement that the adapters declare whether the account executes it. What they declare is the
// same for all types of table.
func (c *accountCheck) adapters(ctx context.Context) error {
	infos, err := bundled.Infos()
	if err != nil {
		return err
	}
	var manifest *plugin.Manifest
	for _, info := range infos {
		if info.Name == "snowflake_standard" {
			manifest = &info.Manifest
		}
	}
	if manifest == nil {
		return errors.New("the adapter snowflake_standard is not in this program")
	}
	sends := manifest.Patterns()
	for _, list := range [][]string{sends.Query, sends.Statements, sends.DDL, sends.Session} {
		for i, pattern := range list {
			is := func(sql string) bool { return plugin.Allowing(list, sql, manifest.Dialect, nil) == i }
			relations := relationsOf(pattern)
			for _, relation := range relations {
				err := c.statement(ctx, "adapter.select."+strings.TrimPrefix(relation, "*."), "Adapters send: SELECT of "+relation,
					func(sql string) bool {
						return strings.Contains(strings.ToLower(sql), strings.TrimPrefix(relation, "*.")) && is(sql)
					})
				if err != nil {
					return err
				}
			}
			if len(relations) > 0 {
				continue
			}
			if err := c.statement(ctx, "adapter."+slug(pattern), "Adapters send: "+pattern, is); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	readsPlace   = regexp.MustCompile(`\{reads ([^}]*)\}`)
	patternWords = regexp.MustCompile(`[A-Za-z_$*]+`)
)

// relationsOf are those that a pattern names, by their schema.
func relationsOf(pattern string) (relations []string) {
	for _, m := range readsPlace.FindAllStringSubmatch(pattern, -1) {
		for name := range strings.FieldsSeq(m[1]) {
			if strings.Contains(name, ".") {
				relations = append(relations, name)
			}
		}
	}
	return relations
}

// slug is a pattern as an id.
func slug(pattern string) string {
	return strings.ToLower(strings.Join(patternWords.FindAllString(strings.ReplaceAll(pattern, "{*}", ""), -1), "-"))
}

// exportedBy are the statements of an export.
var exportedBy = []struct{ id, begins string }{
	{"put", "PUT"}, {"list", "LIST"}, {"copy", "COPY INTO"}, {"remove", "REMOVE"}, {"begin", "BEGIN TRANSACTION NAME"},
	{"transactions", "SHOW TRANSACTIONS"}, {"insert", "INSERT INTO"}, {"update", "UPDATE"},
}

// exported asks whether a run can be taken to the account and read back: in a schema of its own, or, where the role may
// make none, in the connection's as long as that has nothing under the names of the tables.
func (c *accountCheck) exported(ctx context.Context) (err error) {
	c.tell("Taking a run to the account and reading it back.")
	schema := c.Name("RESULTS")
	// Sessions of its own: one that has made a schema has it for its current one.
	maker, err := snowflake.NewDriver().Open(target.Config{DSN: c.DSN})
	if err != nil {
		return err
	}
	defer func() { _ = maker.Close() }() // nothing of it is open
	err = c.Ask(ctx, snowflake.Assumption{ID: "export.schema", Sentence: "The role may make a schema for results."},
		"standard.run", time.Minute,
		func(ctx context.Context) (bool, string, error) {
			return true, "", maker.Exec(ctx, "CREATE SCHEMA "+schema)
		})
	if err != nil {
		return err
	}
	dsn := c.DSN.Reveal()
	if c.Holds("export.schema") {
		defer func() {
			dropping, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			a := snowflake.Assumption{ID: "export.clean", Sentence: "What the export makes, the check can drop.",
				Outcome: snowflake.Held}
			if e := maker.Exec(dropping, "DROP SCHEMA IF EXISTS "+schema+" CASCADE"); e != nil {
				a.Outcome, a.Found = snowflake.NotHeld, "a schema is left, whose name begins with "+snowflake.CheckPrefix
			}
			c.Add(a)
		}()
		if dsn, err = snowflake.WithSchema(ctx, c.Database, dsn, schema); err != nil {
			return err
		}
	}
	db, err := snowflake.Observe(snowflake.NewDriver(), c.seen.tell).Open(target.Config{DSN: secret.New(dsn)})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing of it is open
	account, ok := db.(snowflakeexport.Account)
	if !ok {
		return errors.New("the driver of Snowflake takes no files")
	}
	return c.exportTo(ctx, account)
}

func (c *accountCheck) exportTo(ctx context.Context, account snowflakeexport.Account) error {
	own := c.Holds("export.schema")
	var made []snowflakeexport.Applied
	err := c.Ask(ctx, snowflake.Assumption{ID: "export.apply", Sentence: "The tables of results can be made."},
		"standard.run", checkedExportTimeout, func(ctx context.Context) (_ bool, _ string, err error) {
			if !own {
				switch there, err := snowflakeexport.AnyObject(ctx, account); {
				case err != nil:
					return false, "", err
				case there:
					return false, "", &snowflake.UncheckedError{
						Why: "the role may make no schema, and the connection's has tables of these names"}
				}
			}
			made, err = snowflakeexport.ApplySchema(ctx, account)
			for _, step := range made {
				if step.Refused != "" && err == nil {
					return false, step.Name + ": " + c.Hide(step.Refused), nil
				}
			}
			return err == nil, "", err
		})
	if !own {
		defer func() { c.dropMade(ctx, account, made) }()
	}
	if err != nil {
		return err
	}
	e := &snowflakeexport.Export{Store: c.s.Store, Record: c.s.Results, Detail: c.s.Runs.Detail, Account: account,
		Cure:          SnowflakeSchemaCommand("CONNECTION"),
		IngestPending: func(context.Context, string) (bool, error) { return false, nil },
		RaiseEpochs:   c.s.Store.RaiseRefreshEpochs}
	id := c.runs["standard"]
	if err := c.Ask(ctx, snowflake.Assumption{ID: "export.run",
		Sentence: "A run is taken to the account, and its times are read there as they were recorded."}, "export.apply",
		checkedExportTimeout, func(ctx context.Context) (bool, string, error) {
			claim := refresh.Claim{Task: refresh.Task{Table: snowflakeexport.Table, Subtask: id}, Worker: "check", Epoch: 1}
			_, err := e.Run(ctx, claim, func(context.Context) error { return nil })
			return true, "", err
		}); err != nil {
		return err
	}
	if err := c.Ask(ctx, snowflake.Assumption{ID: "export.readback", Sentence: "What is read back of it is the original."},
		"export.run", checkedExportTimeout, func(ctx context.Context) (bool, string, error) {
			differ, err := e.Differences(ctx, id)
			return len(differ) == 0, strings.Join(differ, ", "), err
		}); err != nil {
		return err
	}
	for _, s := range exportedBy {
		err := c.statement(ctx, "export."+s.id, "The export sends: "+s.begins+" …", func(sql string) bool {
			return strings.HasPrefix(sql+" ", s.begins+" ")
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// dropMade drops the tables of results that the check has made in the connection's schema.
func (c *accountCheck) dropMade(ctx context.Context, account snowflakeexport.Account, made []snowflakeexport.Applied) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	a := snowflake.Assumption{ID: "export.clean", Sentence: "What the export makes, the check can drop.",
		Outcome: snowflake.Held}
	for _, step := range slices.Backward(made) {
		if step.Done != "created" {
			continue
		}
		kind := "TABLE "
		if strings.HasPrefix(step.Name, "V_") {
			kind = "VIEW "
		}
		if err := account.Exec(ctx, "DROP "+kind+"IF EXISTS "+step.Name); err != nil {
			a.Outcome, a.Found = snowflake.NotHeld, step.Name+" is left"
		}
	}
	if len(made) > 0 {
		c.Add(a)
	}
}
