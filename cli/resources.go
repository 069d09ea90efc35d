// This part is loadstone runs, templates, connections and schedules: list, get, delete.

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

const (
	templatesPath   = "/api/templates"
	connectionsPath = "/api/connections"
	schedulesPath   = "/api/v1/schedules"
	runsPath        = "/api/runs"
)

// JSONFlag has an answer printed as the server gave it.
type JSONFlag struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// NamedResource names one thing.
type NamedResource struct {
	Name string `arg:"" help:"Its name, or its id."`
}

// RunsCommands are those of loadstone runs.
type RunsCommands struct {
	List   RunsList   `cmd:"" default:"withargs" help:"List runs, the newest first."`
	Get    RunsGet    `cmd:"" help:"Print a run with its figures, as JSON."`
	Delete RunsDelete `cmd:"" help:"Delete a run and its executions."`
}

// TemplatesCommands are those of loadstone templates.
type TemplatesCommands struct {
	List   TemplatesList   `cmd:"" default:"1" help:"List templates by name."`
	Get    TemplatesGet    `cmd:"" help:"Print a template as a file for apply."`
	Apply  TemplatesApply  `cmd:"" help:"Save templates from files."`
	Delete TemplatesDelete `cmd:"" help:"Delete a template. Its runs stay."`
}

// ConnectionsCommands are those of loadstone connections.
type ConnectionsCommands struct {
	List   ConnectionsList   `cmd:"" default:"1" help:"List saved connections by name, without their passwords."`
	Get    ConnectionsGet    `cmd:"" help:"Print a connection as a file for apply. Its password is ***, which keeps the saved one."`
	Apply  ConnectionsApply  `cmd:"" help:"Save connections from files."`
	Delete ConnectionsDelete `cmd:"" help:"Delete a connection that nothing uses."`
}

// SchedulesCommands are those of loadstone schedules.
type SchedulesCommands struct {
	List   SchedulesList   `cmd:"" default:"1" help:"List schedules with their next and last starts."`
	Get    SchedulesGet    `cmd:"" help:"Print a schedule as a file for apply."`
	Starts SchedulesStarts `cmd:"" help:"List what became of a schedule's starts, the newest first."`
	Apply  SchedulesApply  `cmd:"" help:"Save schedules from files."`
	Pause  SchedulesPause  `cmd:"" help:"Pause a schedule."`
	Resume SchedulesResume `cmd:"" help:"Resume a paused or suspended schedule. You become its owner."`
	Delete SchedulesDelete `cmd:"" help:"Delete a schedule. Its runs stay."`
}

// columns writes a table of texts of others.
func columns(e *terminal.Env, head string, rows [][]string) error {
	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, head)
	for _, row := range rows {
		for i, text := range row {
			row[i] = terminal.Shown(text)
		}
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// printJSON prints an answer, indented.
func printJSON(e *terminal.Env, answer json.RawMessage) error {
	var value any
	if err := json.Unmarshal(answer, &value); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	out := json.NewEncoder(e.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

// shortTime is a moment in a table.
func shortTime(t engine.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// found is the one of a list that has a name or an id.
func found[T any](list []T, name string, names func(T) (name, id string), what string) (one T, err error) {
	for _, v := range list {
		if n, id := names(v); n == name || id == name {
			return v, nil
		}
	}
	return one, &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("There is no %s %q.", what, name),
		Hint: fmt.Sprintf("loadstone %ss list shows which there are.", what)}
}

// RunsList is loadstone runs list.
type RunsList struct {
	Status   []string `placeholder:"STATUS" help:"Only runs with this status: PREPARED, RUNNING, STOPPING, CANCELLING, COMPLETED, FAILED or CANCELLED."`
	Template string   `placeholder:"NAME" help:"Only runs of this template."`
	Search   string   `placeholder:"TEXT" help:"Only runs with this text in their name."`
	Tag      []string `placeholder:"KEY:VALUE" sep:"none" help:"Only runs with this tag. Repeatable: all must match."`
	Limit    int      `default:"20" placeholder:"N" help:"How many, at most 200 (default: 20)."`
	JSONFlag
}

// Run lists the runs.
func (c RunsList) Run(e *terminal.Env, do APICall) error {
	q := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	if len(c.Status) > 0 {
		q.Set("status", strings.ToUpper(strings.Join(c.Status, ",")))
	}
	if c.Search != "" {
		q.Set("search", c.Search)
	}
	if len(c.Tag) > 0 {
		q["tag"] = c.Tag
	}
	if c.Template != "" {
		t, err := templateNamed(e.Ctx, do, c.Template)
		if err != nil {
			return err
		}
		q.Set("template_id", t.TemplateID)
	}
	var answer json.RawMessage
	if err := do(e.Ctx, http.MethodGet, runsPath+"?"+q.Encode(), nil, &answer); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e, answer)
	}
	var list store.RunList
	if err := json.Unmarshal(answer, &list); err != nil {
		return fmt.Errorf("reading the runs: %w", err)
	}
	figure := func(v *float64, digits int) string {
		if v == nil {
			return "-"
		}
		return strconv.FormatFloat(*v, 'f', digits, 64)
	}
	rows := make([][]string, 0, len(list.Runs))
	for _, r := range list.Runs {
		passed := "-"
		if r.Passed != nil {
			passed = map[bool]string{true: "passed", false: "failed"}[*r.Passed]
		}
		rows = append(rows, []string{r.RunID, r.RunName, string(r.Status), shortTime(r.CreatedAt), figure(r.QPS, 1),
			figure(r.P95Ms, 2), passed})
	}
	return columns(e, "RUN\tNAME\tSTATUS\tCREATED\tQPS\tP95 MS\tTHRESHOLDS", rows)
}

// RunID names a run.
type RunID struct {
	RunID string `arg:"" name:"run" help:"The run's id."`
}

func (r RunID) path() string { return runsPath + "/" + url.PathEscape(r.RunID) }

// RunsGet is loadstone runs get.
type RunsGet struct{ RunID }

// Run prints the run.
func (c RunsGet) Run(e *terminal.Env, do APICall) error {
	var answer json.RawMessage
	if err := do(e.Ctx, http.MethodGet, c.path(), nil, &answer); err != nil {
		return err
	}
	return printJSON(e, answer)
}

// RunsDelete is loadstone runs delete.
type RunsDelete struct{ RunID }

// Run deletes the run.
func (c RunsDelete) Run(e *terminal.Env, do APICall) error {
	return deleted(e, do, c.path(), "run", c.RunID.RunID)
}

// deleted deletes a thing, and says so.
func deleted(e *terminal.Env, do APICall, path, what, name string) error {
	if err := do(e.Ctx, http.MethodDelete, path, nil, nil); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(e.Stdout, "%s %s: deleted\n", what, terminal.Shown(name))
	return nil
}

func listTemplates(ctx context.Context, do APICall) ([]store.Template, error) {
	var list struct {
		Templates []store.Template `json:"templates"`
	}
	err := do(ctx, http.MethodGet, templatesPath, nil, &list)
	return list.Templates, err
}

func templateNamed(ctx context.Context, do APICall, name string) (store.Template, error) {
	list, err := listTemplates(ctx, do)
	if err != nil {
		return store.Template{}, err
	}
	return found(list, name, func(t store.Template) (string, string) { return t.Name, t.TemplateID }, "template")
}

func templatePath(t store.Template) string { return templatesPath + "/" + url.PathEscape(t.TemplateID) }

// TemplatesList is loadstone templates list.
type TemplatesList struct{ JSONFlag }

// Run lists the templates.
func (c TemplatesList) Run(e *terminal.Env, do APICall) error {
	if c.JSON {
		var answer json.RawMessage
		if err := do(e.Ctx, http.MethodGet, templatesPath, nil, &answer); err != nil {
			return err
		}
		return printJSON(e, answer)
	}
	list, err := listTemplates(e.Ctx, do)
	if err != nil {
		return err
	}
	rows := make([][]string, 0, len(list))
	for _, t := range list {
		mode := string(t.Config.Workload.LoadMode)
		if t.Config.Matrix != nil {
			mode += fmt.Sprintf(", %s", engine.Count(len(t.Config.Matrix.Targets), "target"))
		}
		rows = append(rows, []string{t.Name, t.Config.Workload.Plugin, mode, t.Access.Owner, shortTime(t.UpdatedAt)})
	}
	return columns(e, "NAME\tWORKLOAD\tMODE\tOWNER\tCHANGED", rows)
}

// TemplatesGet is loadstone templates get.
type TemplatesGet struct{ NamedResource }

// Run prints the template's text.
func (c TemplatesGet) Run(e *terminal.Env, do APICall) error {
	t, err := templateNamed(e.Ctx, do, c.Name)
	if err == nil {
		err = do(e.Ctx, http.MethodGet, templatePath(t), nil, &t)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(e.Stdout, terminal.StripControls(strings.TrimRight(t.Source, "\n"))+"\n")
	return err
}

// TemplatesDelete is loadstone templates delete.
type TemplatesDelete struct{ NamedResource }

// Run deletes the template.
func (c TemplatesDelete) Run(e *terminal.Env, do APICall) error {
	t, err := templateNamed(e.Ctx, do, c.Name)
	if err != nil {
		return err
	}
	return deleted(e, do, templatePath(t), "template", t.Name)
}

func listConnections(ctx context.Context, do APICall) ([]store.Connection, error) {
	var list struct {
		Connections []store.Connection `json:"connections"`
	}
	err := do(ctx, http.MethodGet, connectionsPath, nil, &list)
	return list.Connections, err
}

func connectionNamed(ctx context.Context, do APICall, name string) (store.Connection, error) {
	list, err := listConnections(ctx, do)
	if err != nil {
		return store.Connection{}, err
	}
	return found(list, name, func(c store.Connection) (string, string) { return c.Name, c.ConnectionID }, "connection")
}

// ConnectionsList is loadstone connections list.
type ConnectionsList struct{ JSONFlag }

// Run lists the connections.
func (c ConnectionsList) Run(e *terminal.Env, do APICall) error {
	if c.JSON {
		var answer json.RawMessage
		if err := do(e.Ctx, http.MethodGet, connectionsPath, nil, &answer); err != nil {
			return err
		}
		return printJSON(e, answer)
	}
	list, err := listConnections(e.Ctx, do)
	if err != nil {
		return err
	}
	rows := make([][]string, 0, len(list))
	for _, v := range list {
		kind := "-"
		switch {
		case v.Builtin:
			kind = "built in"
		case v.Production:
			kind = "production"
		}
		rows = append(rows, []string{v.Name, v.Driver, kind, v.Access.Owner, v.DSN})
	}
	return columns(e, "NAME\tDRIVER\tKIND\tOWNER\tDSN", rows)
}

// ConnectionsGet is loadstone connections get.
type ConnectionsGet struct{ NamedResource }

// Run prints the connection.
func (c ConnectionsGet) Run(e *terminal.Env, do APICall) error {
	v, err := connectionNamed(e.Ctx, do, c.Name)
	if err != nil {
		return err
	}
	return printYAML(e, connectionDocumentOf(v))
}

// ConnectionsDelete is loadstone connections delete.
type ConnectionsDelete struct{ NamedResource }

// Run deletes the connection.
func (c ConnectionsDelete) Run(e *terminal.Env, do APICall) error {
	v, err := connectionNamed(e.Ctx, do, c.Name)
	if err != nil {
		return err
	}
	return deleted(e, do, connectionsPath+"/"+url.PathEscape(v.ConnectionID), "connection", v.Name)
}

// printYAML prints a document of a file.
func printYAML(e *terminal.Env, document any) error {
	text, err := yaml.Marshal(document)
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	_, err = fmt.Fprint(e.Stdout, terminal.StripControls(string(text)))
	return err
}

func listSchedules(ctx context.Context, do APICall) ([]engine.Schedule, error) {
	var list struct {
		Schedules []engine.Schedule `json:"schedules"`
	}
	err := do(ctx, http.MethodGet, schedulesPath, nil, &list)
	return list.Schedules, err
}

func scheduleNamed(ctx context.Context, do APICall, name string) (engine.Schedule, error) {
	list, err := listSchedules(ctx, do)
	if err != nil {
		return engine.Schedule{}, err
	}
	return found(list, name, func(v engine.Schedule) (string, string) { return v.Name, v.ScheduleID }, "schedule")
}

func schedulePath(v engine.Schedule) string {
	return schedulesPath + "/" + url.PathEscape(v.ScheduleID)
}

// startWords is what became of a start, in a table.
func startWords(st *engine.ScheduledStart) string {
	if st == nil {
		return "-"
	}
	words := strings.ToLower(string(st.Outcome))
	if id := st.RunID + st.MatrixID; id != "" {
		words += " " + id
	}
	if st.Missed > 1 {
		words += fmt.Sprintf(" (%d times)", st.Missed)
	}
	return words
}

// SchedulesList is loadstone schedules list.
type SchedulesList struct{ JSONFlag }

// Run lists the schedules.
func (c SchedulesList) Run(e *terminal.Env, do APICall) error {
	if c.JSON {
		var answer json.RawMessage
		if err := do(e.Ctx, http.MethodGet, schedulesPath, nil, &answer); err != nil {
			return err
		}
		return printJSON(e, answer)
	}
	list, err := listSchedules(e.Ctx, do)
	if err != nil {
		return err
	}
	rows := make([][]string, 0, len(list))
	for _, v := range list {
		next := shortTime(v.NextDue)
		switch {
		case v.Suspended != "":
			next = "suspended: " + v.Suspended
		case v.Paused:
			next = "paused"
		}
		rows = append(rows, []string{v.Name, v.TemplateName, v.Cron, v.TimeZone, next, startWords(v.Last), v.Owner})
	}
	return columns(e, "NAME\tTEMPLATE\tCRON\tTIME ZONE\tNEXT\tLAST\tOWNER", rows)
}

// SchedulesGet is loadstone schedules get.
type SchedulesGet struct{ NamedResource }

// Run prints the schedule.
func (c SchedulesGet) Run(e *terminal.Env, do APICall) error {
	v, err := scheduleNamed(e.Ctx, do, c.Name)
	if err != nil {
		return err
	}
	return printYAML(e, scheduleDocumentOf(v))
}

// SchedulesStarts is loadstone schedules starts.
type SchedulesStarts struct {
	NamedResource
	Limit int `default:"20" placeholder:"N" help:"How many, at most 200 (default: 20)."`
	JSONFlag
}

// Run lists the starts.
func (c SchedulesStarts) Run(e *terminal.Env, do APICall) error {
	v, err := scheduleNamed(e.Ctx, do, c.Name)
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := do(e.Ctx, http.MethodGet, fmt.Sprintf("%s/starts?limit=%d", schedulePath(v), c.Limit), nil,
		&answer); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e, answer)
	}
	var list struct {
		Starts []engine.ScheduledStart `json:"starts"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return fmt.Errorf("reading the starts: %w", err)
	}
	rows := make([][]string, 0, len(list.Starts))
	for _, st := range list.Starts {
		rows = append(rows, []string{st.DueAt.UTC().Format(time.RFC3339), startWords(&st), st.Reason})
	}
	return columns(e, "DUE\tOUTCOME\tREASON", rows)
}

// ConfirmProductionFlag confirms production connections.
type ConfirmProductionFlag struct {
	Confirm []string `name:"confirm-production" placeholder:"NAME" sep:"none" help:"Name of a production connection that the runs may load. Repeatable."`
}

// SchedulesPause is loadstone schedules pause.
type SchedulesPause struct {
	NamedResource
	Confirm []string `name:"confirm-production" sep:"none" hidden:"" help:"Of no use: pausing loads nothing."`
}

// Run pauses the schedule.
func (c SchedulesPause) Run(e *terminal.Env, do APICall) error {
	return changePause(e, do, c.Name, nil, true)
}

// SchedulesResume is loadstone schedules resume.
type SchedulesResume struct {
	NamedResource
	ConfirmProductionFlag
}

// Run resumes the schedule.
func (c SchedulesResume) Run(e *terminal.Env, do APICall) error {
	return changePause(e, do, c.Name, c.Confirm, false)
}

func changePause(e *terminal.Env, do APICall, name string, confirm []string, paused bool) error {
	v, err := scheduleNamed(e.Ctx, do, name)
	if err != nil {
		return err
	}
	d := scheduleDocumentOf(v)
	d.Paused, d.Confirm = &paused, confirm
	if err := do(e.Ctx, http.MethodPut, schedulePath(v), d.request(v.Version), &v); err != nil {
		return err
	}
	what := "paused"
	if !paused {
		what = "next start " + shortTime(v.NextDue)
	}
	_, _ = fmt.Fprintf(e.Stdout, "schedule %s: %s\n", terminal.Shown(v.Name), what)
	return nil
}

// SchedulesDelete is loadstone schedules delete.
type SchedulesDelete struct{ NamedResource }

// Run deletes the schedule.
func (c SchedulesDelete) Run(e *terminal.Env, do APICall) error {
	v, err := scheduleNamed(e.Ctx, do, c.Name)
	if err != nil {
		return err
	}
	return deleted(e, do, schedulePath(v), "schedule", v.Name)
}
