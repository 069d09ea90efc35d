// This part applies files: connections, templates, schedules and stream SQL become what the files say.

package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
)

// The kinds of files, in the order in which they are applied.
const (
	kindConnection = "connection"
	kindTemplate   = "template"
	kindSchedule   = "schedule"
	kindStatements = "statements"
)

// FilesFlags say what is applied.
type FilesFlags struct {
	File   []string `short:"f" name:"file" required:"" placeholder:"FILE" sep:"none" help:"File or folder to apply. Repeatable."`
	DryRun bool     `name:"dry-run" help:"Print what would change, and change nothing."`
}

// connectionDocument is a connection as a file has it.
type connectionDocument struct {
	Kind        string          `yaml:"kind"`
	Name        string          `yaml:"name"`
	Driver      string          `yaml:"driver"`
	DSN         string          `yaml:"dsn"`
	Description *string         `yaml:"description,omitempty"` // left out, both stay as they are
	Production  *bool           `yaml:"production,omitempty"`
	Access      *accessDocument `yaml:"access,omitempty"`
}

// accessDocument says who may use a connection. Without it, access stays as it is.
type accessDocument struct {
	Restricted bool     `yaml:"restricted"`
	Users      []string `yaml:"users,omitempty"`
}

func connectionDocumentOf(c store.Connection) connectionDocument {
	d := connectionDocument{Kind: kindConnection, Name: c.Name, Driver: c.Driver, DSN: c.DSN}
	if c.Description != "" {
		d.Description = &c.Description
	}
	if c.Production {
		d.Production = &c.Production
	}
	if c.Access.Restricted {
		d.Access = &accessDocument{Restricted: true}
		for _, u := range c.Access.Users {
			d.Access.Users = append(d.Access.Users, u.Name)
		}
	}
	return d
}

// request is what a server is sent to save the connection.
func (d connectionDocument) request(version int64) map[string]any {
	in := map[string]any{"name": d.Name, "driver": d.Driver, "dsn": d.DSN}
	if d.Description != nil {
		in["description"] = *d.Description
	}
	if d.Production != nil {
		in["production"] = *d.Production
	}
	if d.Access != nil {
		in["access"] = map[string]any{"restricted": d.Access.Restricted, "users": append([]string{}, d.Access.Users...)}
	}
	if version > 0 {
		in["version"] = version
	}
	return in
}

// scheduleDocument is a schedule as a file has it.
type scheduleDocument struct {
	Kind     string   `yaml:"kind"`
	Name     string   `yaml:"name"`
	Template string   `yaml:"template"`
	Cron     string   `yaml:"cron"`
	TimeZone string   `yaml:"time_zone,omitempty"`
	Paused   *bool    `yaml:"paused,omitempty"` // left out, it stays as it is
	Confirm  []string `yaml:"confirm_production,omitempty"`
}

func scheduleDocumentOf(v engine.Schedule) scheduleDocument {
	d := scheduleDocument{Kind: kindSchedule, Name: v.Name, Template: v.TemplateName, Cron: v.Cron, TimeZone: v.TimeZone,
		Confirm: v.ConfirmedNames}
	if v.Paused {
		d.Paused = &v.Paused
	}
	return d
}

// request is what a server is sent to save the schedule.
func (d scheduleDocument) request(version int64) map[string]any {
	in := map[string]any{"name": d.Name, "template_name": d.Template, "cron": d.Cron, "time_zone": d.TimeZone,
		"paused": d.Paused != nil && *d.Paused}
	if len(d.Confirm) > 0 {
		in["confirm_production"] = d.Confirm
	}
	if version > 0 {
		in["version"] = version
	}
	return in
}

// applyFile is a file, read.
type applyFile struct {
	kind, path string
	source     []byte
	connection connectionDocument
	schedule   scheduleDocument
	name       string // of a template
}

// maxApplyFiles bounds how many files a folder has.
const maxApplyFiles = 2000

// readApplyFiles reads files, and those of folders by their names. only restricts their kind, "" takes all.
func readApplyFiles(paths []string, only string) ([]applyFile, error) {
	var list []applyFile
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			inside, err := folderFiles(path)
			if err != nil {
				return nil, err
			}
			for _, p := range inside {
				f, err := readApplyFile(p)
				if err != nil {
					return nil, err
				}
				list = append(list, f)
			}
			continue
		}
		f, err := readApplyFile(path)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	seen := map[string]string{}
	for _, f := range list {
		if only != "" && f.kind != only {
			return nil, fileError(f.path, fmt.Sprintf("it has a %s, and this command takes a %s", f.kind, only),
				"use loadstone apply, which takes all kinds")
		}
		name := f.connection.Name + f.schedule.Name + f.name
		key := f.kind + " " + name
		if before, twice := seen[key]; twice && f.kind != kindStatements {
			return nil, fileError(f.path, fmt.Sprintf("the %s %q is in %s, too", f.kind, name, before), "leave one of them out")
		}
		seen[key] = f.path
	}
	return list, nil
}

// folderFiles are the files of a folder and its folders that can be applied, by name. Hidden ones are left out.
func folderFiles(folder string) (paths []string, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(d.Name(), ".") && path != folder && d.IsDir():
			return filepath.SkipDir
		case d.IsDir() || strings.HasPrefix(d.Name(), "."):
		case slices.Contains([]string{".yaml", ".yml", ".json", ".sql"}, strings.ToLower(filepath.Ext(path))):
			if paths = append(paths, path); len(paths) > maxApplyFiles {
				return fmt.Errorf("it has more than %d files", maxApplyFiles)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fileError(folder, err.Error(), "name a folder that can be read")
	}
	if len(paths) == 0 {
		return nil, fileError(folder, "it has no file that ends in .yaml, .yml, .json or .sql", "name another folder")
	}
	return paths, nil
}

func fileError(path, what, hint string) error {
	return &engine.Error{
		Code:    engine.CodeInvalid,
		Message: fmt.Sprintf("%s cannot be applied: %s.", path, what),
		Hint:    hint,
	}
}

// readApplyFile reads a file. What it has is told by its members: kind says connection or schedule, statements are a
// list, and a template has a workload.
func readApplyFile(path string) (f applyFile, err error) {
	f.path = path
	if f.source, err = terminal.ReadBounded("The file", path, maxStatementsBytes); err != nil {
		return f, err
	}
	if ext := strings.ToLower(filepath.Ext(path)); ext != ".yaml" && ext != ".yml" && ext != ".json" {
		f.kind = kindStatements
		return f, nil
	}
	var members map[string]any
	if err := yaml.Unmarshal(f.source, &members); err != nil {
		f.kind = kindStatements // whose reader says what is wrong
		return f, nil           //nolint:nilerr // it is said there, with the line
	}
	_, statements := members["statements"]
	_, workload := members["workload"]
	kind, named := members["kind"]
	switch {
	case statements || !named && !workload:
		f.kind = kindStatements
		return f, nil
	case !named:
		f.kind = kindTemplate
		if f.name, _ = members["name"].(string); f.name == "" {
			return f, fileError(path, "the template has no name", "write name: …")
		}
		return f, nil
	case kind == kindConnection:
		f.kind = kindConnection
		if err := f.decode(&f.connection); err != nil {
			return f, err
		}
		if f.connection.Name == "" || f.connection.Driver == "" || f.connection.DSN == "" {
			return f, fileError(path, "a connection needs name, driver and dsn", "write all three")
		}
		f.connection.DSN, err = expandVariables(path, f.connection.DSN)
		return f, err
	case kind == kindSchedule:
		f.kind = kindSchedule
		if err := f.decode(&f.schedule); err != nil {
			return f, err
		}
		if f.schedule.Name == "" || f.schedule.Template == "" || f.schedule.Cron == "" {
			return f, fileError(path, "a schedule needs name, template and cron", "write all three")
		}
		f.schedule.TimeZone = cmp.Or(f.schedule.TimeZone, "UTC")
		return f, nil
	}
	return f, fileError(
		path,
		fmt.Sprintf("the kind %v is unknown", kind),
		"write connection or schedule; a template has none",
	)
}

// decode reads the only document of a file.
func (f applyFile) decode(into any) error {
	d := yaml.NewDecoder(bytes.NewReader(f.source))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		return fileError(f.path, strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "yaml: "),
			"docs/guides/ci.md has an example")
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return fileError(f.path, "it goes on after ---", "write each document into a file of its own")
	}
	return nil
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expandVariables puts values of the environment into a DSN: as they are where the variable is all there is, and else
// as they stand in an address.
func expandVariables(path, dsn string) (string, error) {
	missing := ""
	value := func(reference string) string {
		name := variable.FindStringSubmatch(reference)[1]
		v, ok := os.LookupEnv(name)
		if !ok {
			missing = name
		}
		return v
	}
	var out string
	if variable.FindString(dsn) == dsn {
		out = value(dsn)
	} else {
		out = variable.ReplaceAllStringFunc(dsn, func(r string) string {
			return strings.ReplaceAll(url.QueryEscape(value(r)), "+", "%20")
		})
	}
	if missing != "" {
		return "", fileError(path, "the variable "+missing+" of its dsn is not set", "set it, or write the value")
	}
	return out, nil
}

// applier applies files on a server.
type applier struct {
	e       *terminal.Env
	do      APICall
	dryRun  bool
	confirm []string
	secrets target.Secrets

	created, changed, unchanged int
}

// apply applies files in an order in which each finds what it needs.
func (a *applier) apply(files []applyFile) error {
	a.secrets = target.NewSecrets(workerDrivers(nil))
	of := func(kind string) (list []applyFile) {
		for _, f := range files {
			if f.kind == kind {
				list = append(list, f)
			}
		}
		return list
	}
	for _, step := range []struct {
		kind  string
		apply func([]applyFile) error
	}{{kindConnection, a.connections}, {kindTemplate, a.templates}, {kindStatements, a.statements},
		{kindSchedule, a.schedules}} {
		if list := of(step.kind); len(list) > 0 {
			if err := step.apply(list); err != nil {
				return err
			}
		}
	}
	if total := a.created + a.changed + a.unchanged; total > 0 {
		would := ""
		if a.dryRun {
			would = " Nothing was changed: --dry-run."
		}
		_, _ = fmt.Fprintf(a.e.Stderr, "%d created, %d changed, %d unchanged.%s\n", a.created, a.changed, a.unchanged, would)
	}
	return nil
}

// report prints what became of a resource; changes are nil for a new one. A note is said of one that is unchanged.
func (a *applier) report(kind, name string, isNew bool, changes []string, note string) {
	would := map[bool]string{true: "would be "}[a.dryRun]
	what := "unchanged"
	switch {
	case isNew:
		a.created++
		what = would + "created"
	case len(changes) > 0:
		a.changed++
		what = would + "changed: " + strings.Join(changes, ", ")
	default:
		a.unchanged++
		what += note
	}
	_, _ = fmt.Fprintf(a.e.Stdout, "%s %s: %s\n", kind, terminal.Shown(name), terminal.Shown(what))
}

// save sends a resource, unless this is a dry run or nothing has changed.
func (a *applier) save(f applyFile, name, path string, isNew bool, changes []string, in map[string]any,
	note string) error {
	if !a.dryRun && (isNew || len(changes) > 0) {
		method := http.MethodPut
		if isNew {
			method = http.MethodPost
		}
		if err := a.do(a.e.Ctx, method, path, in, nil); err != nil {
			return inFile(f.path, err)
		}
	}
	a.report(f.kind, name, isNew, changes, note)
	return nil
}

// saveSecret sends a resource that looks as it is, and whose file has a password: no server shows that, so that it
// compares it itself. It keeps the version of what is equal.
func (a *applier) saveSecret(f applyFile, name, path string, version int64, in map[string]any) error {
	if a.dryRun {
		a.report(f.kind, name, false, nil, "; its password is not compared by --dry-run")
		return nil
	}
	in["version"], in["keep_equal"] = version, true
	var now struct {
		Version int64 `json:"version"`
	}
	if err := a.do(a.e.Ctx, http.MethodPut, path, in, &now); err != nil {
		return inFile(f.path, err)
	}
	var changes []string
	if now.Version != version {
		changes = []string{"password"}
	}
	a.report(f.kind, name, false, changes, "")
	return nil
}

// inFile is an error with the file that it is about.
func inFile(path string, err error) error {
	e := *engine.AsError(err)
	if e.Code == engine.CodeInternal {
		return fmt.Errorf("%s: %w", path, err)
	}
	e.Message = path + ": " + e.Message
	return &e
}

// changed names a field whose value is another; hidden values are not shown.
func changed(changes []string, field, from, to string) []string {
	if from == to {
		return changes
	}
	return append(changes, fmt.Sprintf("%s %s → %s", field, quoted(from), quoted(to)))
}

// quoted is a value in a list of changes.
func quoted(text string) string {
	if text == "" {
		return "none"
	}
	return terminal.Shorten(terminal.OneLine(text), 60)
}

func (a *applier) connections(files []applyFile) error {
	list, err := listConnections(a.e.Ctx, a.do)
	if err != nil {
		return err
	}
	for _, f := range files {
		d := f.connection
		at := slices.IndexFunc(list, func(c store.Connection) bool { return c.Name == d.Name })
		if at < 0 {
			if err := a.save(f, d.Name, connectionsPath, true, nil, d.request(0), ""); err != nil {
				return err
			}
			continue
		}
		is := list[at]
		if d.Description == nil { // the API has no word for leaving it
			d.Description = &is.Description
		}
		hidden := a.secrets.Hide(d.Driver, d.DSN)
		changes := changed(nil, "driver", is.Driver, d.Driver)
		changes = changed(changes, "dsn", is.DSN, hidden)
		changes = changed(changes, "description", is.Description, *d.Description)
		if d.Production != nil {
			changes = changed(changes, "production", fmt.Sprint(is.Production), fmt.Sprint(*d.Production))
		}
		if d.Access != nil {
			var users []string
			for _, u := range is.Access.Users {
				users = append(users, u.Name)
			}
			changes = changed(changes, "access.restricted", fmt.Sprint(is.Access.Restricted), fmt.Sprint(d.Access.Restricted))
			slices.Sort(users)
			changes = changed(changes, "access.users", strings.Join(users, " "),
				strings.Join(slices.Sorted(slices.Values(d.Access.Users)), " "))
		}
		path := connectionsPath + "/" + url.PathEscape(is.ConnectionID)
		if len(changes) == 0 && hidden != d.DSN {
			err = a.saveSecret(f, d.Name, path, is.Version, d.request(is.Version))
		} else {
			err = a.save(f, d.Name, path, false, changes, d.request(is.Version), "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// storedTemplate is a template with its configuration as it came.
type storedTemplate struct {
	Config  any    `json:"config"`
	Source  string `json:"source"`
	Version int64  `json:"version"`
}

func (a *applier) templates(files []applyFile) error {
	list, err := listTemplates(a.e.Ctx, a.do)
	if err != nil {
		return err
	}
	for _, f := range files {
		var checked struct {
			Config any                 `json:"config"`
			Errors []engine.FieldError `json:"errors"`
		}
		in := map[string]any{"source": string(f.source)}
		if err := a.do(a.e.Ctx, http.MethodPost, templatesPath+"/validate", in, &checked); err != nil {
			return inFile(f.path, err)
		}
		if len(checked.Errors) > 0 {
			return inFile(f.path, &engine.Error{Code: engine.CodeInvalid, Message: "The template is not valid.",
				Fields: checked.Errors})
		}
		at := slices.IndexFunc(list, func(t store.Template) bool { return t.Name == f.name })
		if at < 0 {
			if err := a.save(f, f.name, templatesPath, true, nil, in, ""); err != nil {
				return err
			}
			continue
		}
		var is storedTemplate
		path := templatePath(list[at])
		if err := a.do(a.e.Ctx, http.MethodGet, path, nil, &is); err != nil {
			return inFile(f.path, err)
		}
		changes := configChanges(is.Config, checked.Config)
		in["version"] = is.Version
		if len(changes) == 0 && strings.TrimSpace(is.Source) != strings.TrimSpace(string(f.source)) {
			if strings.Contains(is.Source, target.Mask) { // a text with a password is stored without it
				if err := a.saveSecret(f, f.name, path, is.Version, in); err != nil {
					return err
				}
				continue
			}
			changes = []string{"comments or layout"}
		}
		if err := a.save(f, f.name, path, false, changes, in, ""); err != nil {
			return err
		}
	}
	return nil
}

// configChanges names the fields that differ, by path.
func configChanges(from, to any) (changes []string) {
	before, after := map[string]string{}, map[string]string{}
	flatten("", from, before)
	flatten("", to, after)
	var paths []string
	for path := range before {
		paths = append(paths, path)
	}
	for path := range after {
		if _, there := before[path]; !there {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		changes = changed(changes, path, before[path], after[path])
	}
	return changes
}

// flatten writes the values of a document by their paths. What a server adds is left out.
func flatten(path string, value any, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			switch name {
			case "connection_id", "dsn_sealed", "template_id", "template_name":
				continue
			}
			flatten(strings.TrimPrefix(path+"."+name, "."), inner, into)
		}
	case []any:
		for i, inner := range v {
			flatten(fmt.Sprintf("%s[%d]", path, i), inner, into)
		}
	case nil:
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return
		}
		into[path] = string(text)
	}
}

func (a *applier) schedules(files []applyFile) error {
	list, err := listSchedules(a.e.Ctx, a.do)
	if err != nil {
		return err
	}
	production := productionOf{a: a}
	for _, f := range files {
		d := f.schedule
		d.Confirm = append(slices.Clone(d.Confirm), a.confirm...)
		at := slices.IndexFunc(list, func(v engine.Schedule) bool { return v.Name == d.Name })
		if at < 0 {
			if err := a.save(f, d.Name, schedulesPath, true, nil, d.request(0), ""); err != nil {
				return err
			}
			continue
		}
		is := list[at]
		changes := changed(nil, "template", is.TemplateName, d.Template)
		changes = changed(changes, "cron", is.Cron, d.Cron)
		changes = changed(changes, "time_zone", is.TimeZone, d.TimeZone)
		note := ""
		if d.Paused == nil {
			d.Paused = &is.Paused
			if is.Paused {
				note = "; it is paused, and paused: false resumes it"
			}
		}
		changes = changed(changes, "paused", fmt.Sprint(is.Paused), fmt.Sprint(*d.Paused))
		missing, err := production.unconfirmed(is, d)
		if err != nil {
			return inFile(f.path, err)
		}
		if len(missing) > 0 {
			changes = append(changes, "confirm_production "+strings.Join(missing, " "))
		}
		if !*d.Paused && is.Suspended != "" {
			changes = append(changes, "suspended: "+terminal.OneLine(is.Suspended)+" → resumed")
		}
		if err := a.save(f, d.Name, schedulePath(is), false, changes, d.request(is.Version), note); err != nil {
			return err
		}
	}
	return nil
}

// productionOf reads which production connections templates use, when a file confirms one.
type productionOf struct {
	a         *applier
	names     []string // of all production connections, once they are read
	templates []store.Template
}

// unconfirmed are the names that a file confirms and the schedule does not have: of production connections that its
// template uses. Others need no confirmation, and a server keeps none.
func (p *productionOf) unconfirmed(is engine.Schedule, d scheduleDocument) (missing []string, err error) {
	for _, name := range d.Confirm {
		if !slices.Contains(is.ConfirmedNames, name) && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	if p.templates == nil {
		connections, err := listConnections(p.a.e.Ctx, p.a.do)
		if err != nil {
			return nil, err
		}
		for _, c := range connections {
			if c.Production {
				p.names = append(p.names, c.Name)
			}
		}
		if p.templates, err = listTemplates(p.a.e.Ctx, p.a.do); err != nil {
			return nil, err
		}
	}
	var used []string
	for _, t := range p.templates {
		if t.Name == d.Template {
			for _, c := range t.Config.Connections() {
				used = append(used, c.Ref.Name)
			}
		}
	}
	return slices.DeleteFunc(missing, func(name string) bool {
		return !slices.Contains(p.names, name) || !slices.Contains(used, name)
	}), nil
}

// statements applies the files of stream SQL as one group. A server compares them while it applies them, and not
// before.
func (a *applier) statements(files []applyFile) error {
	var pieces []applyPiece
	for _, f := range files {
		of := []applyPiece{{f.path, string(f.source)}}
		if ext := strings.ToLower(filepath.Ext(f.path)); ext == ".yaml" || ext == ".yml" {
			var err error
			if of, err = readYAMLStatements(f.path, f.source); err != nil {
				return err
			}
		}
		pieces = append(pieces, of...)
	}
	if a.dryRun {
		for _, f := range files {
			_, _ = fmt.Fprintf(a.e.Stdout, "%s: stream SQL, not compared by --dry-run\n", f.path)
		}
		return nil
	}
	return applyStatements(a.e, a.do, pieces, a.confirm)
}

// TemplatesApply is loadstone templates apply.
type TemplatesApply struct{ FilesFlags }

// Run applies the files.
func (c TemplatesApply) Run(e *terminal.Env, do APICall) error {
	return c.apply(e, do, kindTemplate, nil)
}

// ConnectionsApply is loadstone connections apply.
type ConnectionsApply struct{ FilesFlags }

// Run applies the files.
func (c ConnectionsApply) Run(e *terminal.Env, do APICall) error {
	return c.apply(e, do, kindConnection, nil)
}

// SchedulesApply is loadstone schedules apply.
type SchedulesApply struct {
	FilesFlags
	ConfirmProductionFlag
}

// Run applies the files.
func (c SchedulesApply) Run(e *terminal.Env, do APICall) error {
	return c.apply(e, do, kindSchedule, c.Confirm)
}

// apply reads all files first, so that nothing is applied when one of them is wrong.
func (f FilesFlags) apply(e *terminal.Env, do APICall, only string, confirm []string) error {
	files, err := readApplyFiles(f.File, only)
	if err != nil {
		return err
	}
	return (&applier{e: e, do: do, dryRun: f.DryRun, confirm: confirm}).apply(files)
}
