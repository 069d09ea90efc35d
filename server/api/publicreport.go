package api

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/findings"
)

// publicRun leaves of a run what may be shown to anybody: a report leaves the server for good, and those who get it may
// use neither the run's connection nor its server. Rows of the target's tables, parameters, people and machines are
// left out, and values in texts masked. What d points to is shared with others, and not changed.
func publicRun(d *engine.RunDetail) {
	publicScenario(&d.Scenario)
	d.Plan = publicPlan(d.Plan)
	d.Live, d.Waiting, d.CreatedBy, d.CreatedByID, d.Owner = nil, nil, "", "", ""
	// Files cannot be fetched without the server.
	d.Artifacts, d.Events, d.LoadChanges = []engine.Artifact{}, []engine.Event{}, publicChanges(d.LoadChanges)
	d.CancellationReason = maskQuoted(d.CancellationReason)
	publicEnrichment(&d.Enrichment)
	if d.Warehouse != nil {
		w := *d.Warehouse
		w.Error = executions.Mask(w.Error)
		d.Warehouse = &w
	}
	d.Workers = slices.Clone(d.Workers)
	for i := range d.Workers {
		publicWorker(&d.Workers[i], len(d.LoadChanges) > 0)
	}
	s := *d.Summary
	s.CancellationReason = maskQuoted(s.CancellationReason)
	publicValidity(&s.ValidityDetail, len(d.LoadChanges) > 0)
	publicFigures(&s.Figures)
	s.Environment = publicEnvironment(s.Environment)
	d.Summary = &s
}

// publicChanges are the changes of the load without who made them: charts show them. The other events tell who has done
// what, in words of theirs.
func publicChanges(events []engine.Event) []engine.Event {
	out := []engine.Event{}
	for _, e := range events {
		d := engine.EventData{Scope: e.Data.Scope, Reason: e.Data.Reason, TargetQPS: e.Data.TargetQPS, OldQPS: e.Data.OldQPS,
			TargetConnections: e.Data.TargetConnections, OldConnections: e.Data.OldConnections}
		out = append(out, engine.Event{RunID: e.RunID, EventID: e.EventID, SequenceID: e.SequenceID, Type: e.Type,
			CreatedAt: e.CreatedAt, Data: d})
	}
	return out
}

// publicMarks are the moments of a run with what happened then, without who has written it.
func publicMarks(list []engine.Mark) []engine.Mark {
	out := []engine.Mark{}
	for _, m := range list {
		out = append(out, engine.Mark{MarkID: m.MarkID, RunID: m.RunID, At: m.At, Text: m.Text})
	}
	return out
}

func publicScenario(s *engine.Scenario) {
	*s = s.Clone()
	s.Matrix = nil // the other targets, with parameters of theirs; this run has its own
	s.Target.Connection.DSN, s.Target.Connection.DSNSealed = "", ""
	s.Rules = nil // statements of somebody's own, and where rows were posted
	// The feed is up to megabytes of rows, of somebody's own data.
	s.Workload.Feed, s.Workload.Params, s.Target.Params = nil, nil, nil
}

// publicPlan names what a report shows of a plan, field by field: one that is added is left out until somebody has
// thought about it. Sampled rows, the SQL of sessions and the bounds of keys are not shown.
func publicPlan(p *engine.Plan) *engine.Plan {
	if p == nil {
		return nil
	}
	out := &engine.Plan{Driver: p.Driver, Warehouse: p.Warehouse, Workload: p.Workload, Adapter: p.Adapter,
		Prepared: p.Prepared, KeySlots: p.KeySlots, MissingCapabilities: p.MissingCapabilities,
		Statements: []engine.Statement{}, Tables: []engine.Table{}}
	for _, s := range p.Statements {
		out.Statements = append(out.Statements, engine.Statement{ID: s.ID, Kind: s.Kind, Table: s.Table,
			SQL: executions.MaskSQL(s.SQL), Binds: s.Binds, BindOrder: s.BindOrder, Columns: s.Columns, Writes: s.Writes,
			Transaction: s.Transaction})
	}
	for _, t := range p.Tables {
		out.Tables = append(out.Tables, engine.Table{Name: t.Name, PhysicalName: t.PhysicalName, Columns: t.Columns,
			Key: t.Key, Rows: t.Rows, RowsExact: t.RowsExact, KnownKeys: t.KnownKeys,
			Dense: t.Dense, Own: t.Own, Dialect: t.Dialect})
	}
	return out
}

func publicWorker(w *engine.RunResult, loadChanged bool) {
	w.Plan = nil
	w.FailureReason = executions.Mask(w.FailureReason)
	if w.Figures != nil {
		f := *w.Figures
		publicFigures(&f)
		w.Figures = &f
	}
	if w.Validity != nil {
		v := *w.Validity
		publicValidity(&v, loadChanged)
		w.Validity = &v
	}
	if w.Environment != nil {
		e := publicEnvironment(*w.Environment)
		w.Environment = &e
	}
	if w.Enrichment != nil {
		e := *w.Enrichment
		publicEnrichment(&e)
		w.Enrichment = &e
	}
}

// publicFindings are why a run was slow, without who was behind it: sessions, users and statements of others.
func publicFindings(list []engine.Finding) []engine.Finding {
	var out []engine.Finding
	for _, f := range list {
		if f.Rule == findings.RuleNotPermitted {
			continue // it names the user
		}
		if f.Who != nil {
			f.Who, f.Text = nil, "Operations waited for another session."
		}
		out = append(out, f)
	}
	return out
}

// publicOutages leaves of the servers that answered what they were, without which of somebody's servers that is.
func publicOutages(list []engine.Outage) []engine.Outage {
	list = slices.Clone(list)
	for i := range list {
		for _, id := range []**engine.ServerIdentity{&list[i].Before, &list[i].After} {
			if s := *id; s != nil {
				*id = &engine.ServerIdentity{At: s.At, Role: s.Role, Version: s.Version}
			}
		}
	}
	return list
}

func publicFigures(f *engine.Figures) {
	f.Findings = publicFindings(f.Findings)
	f.Outages = publicOutages(f.Outages)
	f.Errors.Top = slices.Clone(f.Errors.Top)
	for i := range f.Errors.Top {
		f.Errors.Top[i].Message = executions.Mask(f.Errors.Top[i].Message)
	}
	f.Slowest = slices.Clone(f.Slowest)
	for i := range f.Slowest {
		f.Slowest[i].ErrorMessage = executions.Mask(f.Slowest[i].ErrorMessage)
	}
}

func publicEnvironment(e engine.Environment) engine.Environment {
	e.Hostname = ""
	if e.Calibration != nil {
		c := *e.Calibration
		c.MachineFingerprint = ""
		e.Calibration = &c
	}
	return e
}

func publicEnrichment(e *engine.Enrichment) {
	e.Reason = executions.MaskQuoted(e.Reason)
	e.Notes = slices.Clone(e.Notes)
	for i := range e.Notes {
		e.Notes[i] = executions.MaskQuoted(e.Notes[i])
	}
}

// publicValidity leaves users out of the notes: each is a sentence without its user too. What a version has noted that
// stored no codes is left out of a run whose load users have changed, since it may name them.
func publicValidity(v *engine.Validity, loadChanged bool) {
	v.Causes = slices.Clone(v.Causes)
	for i := range v.Causes {
		c := &v.Causes[i]
		*c = engine.NewCause(c.Cause, publicNote(c.ReadAbout()), c.From.Time, c.To.Time)
	}
	notes := []engine.Note{}
	for _, n := range v.ReadNotes() {
		if n.Code != engine.NoteUncoded || !loadChanged {
			notes = append(notes, publicNote(n))
		}
	}
	v.SetNotes(notes)
}

func publicNote(n engine.Note) engine.Note {
	n.User, n.Address, n.Text = "", "", executions.MaskQuoted(n.Text)
	if n.Code == engine.NoteTargetServer {
		n.At = engine.Time{} // since when the server runs tells which one it is
	}
	return n
}

// publicLogs are the lines of a log without their details. Numbers stay in what Loadstone tells by itself; what went
// wrong may be in the words of a database. A log that a version has written that stored no notes is left out: which of
// its lines name a user is not known.
func publicLogs(list []engine.LogEntry) []engine.LogEntry {
	list = slices.Clone(list)
	coded := false
	for i := range list {
		l := &list[i]
		var about struct{ Note engine.Note }
		switch err := json.Unmarshal(l.Details, &about); {
		case err == nil && about.Note.Code != "":
			coded = coded || about.Note.Code == engine.NoteRunStarted
			l.Message = publicNote(about.Note).String()
		case l.Level == engine.LogInfo:
			l.Message = executions.MaskQuoted(withoutAddress(l.Message))
		default:
			l.Message = executions.Mask(l.Message)
		}
		l.Details = nil
	}
	if !coded && len(list) > 0 {
		list[0].Level, list[0].Message = engine.LogInfo, "The log is left out: the version that wrote it does not say which "+
			"of its lines name users."
		list = list[:1]
	}
	return list
}

// withoutAddress cuts a line off before the address of a server: lines about the observation end with the words of a
// driver, and earlier versions wrote the server that answers as plain text.
func withoutAddress(text string) string {
	for prefix, until := range map[string]string{"What the server does is not observed.": "observed.",
		"The target is the ": " at ", "After an outage ": " at "} {
		if !strings.HasPrefix(text, prefix) {
			continue
		}
		if before, _, found := strings.Cut(text, until); found {
			return strings.TrimSuffix(before+strings.TrimSuffix(until, " at "), ".") + "."
		}
	}
	return text
}

// maskQuoted masks a sentence of Loadstone's that may quote a database.
func maskQuoted(text *string) *string {
	if text == nil {
		return nil
	}
	masked := executions.MaskQuoted(*text)
	return &masked
}
