package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// Document is a scenario as the caller wrote it in JSON. It may leave out
// whatever has a default; the template reader checks it.
type Document struct{ json.RawMessage }

// Schema says what a scenario document is; its full schema is the templates'.
func (Document) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true,
		Description: "A scenario. Fields with a default may be left out; its JSON Schema is at /api/templates/schema."}
}

// ScenarioInput names a scenario in one of four ways.
type ScenarioInput struct {
	TemplateID   string         `json:"template_id,omitempty" maxLength:"128" doc:"A saved template, by its id …"`
	TemplateName string         `json:"template_name,omitempty" maxLength:"300" doc:"… or by its name,"`
	Source       string         `json:"source,omitempty" doc:"or a template's text in YAML or JSON,"`
	Scenario     *Document      `json:"scenario,omitempty" doc:"or a scenario as JSON."`
	AllowWrites  bool           `json:"allow_writes,omitempty" doc:"Let the run write to tables that Loadstone did not make, as target.allow_writes in the scenario does."`
	Set          map[string]any `json:"set,omitempty" maxProperties:"200" doc:"Fields to replace, by path: {\"workload.duration_seconds\": 60}. Text is read as YAML, as on the command line."`
}

// resolve returns the scenario that the input names, checked and complete.
func (a *API) resolve(ctx context.Context, in ScenarioInput) (engine.Scenario, error) {
	s, err := a.named(ctx, in)
	if err != nil {
		return s, err
	}
	if in.AllowWrites {
		s.AllowWrites()
	}
	// From here on the names are not looked up any more: what is judged is what is used.
	return s, a.authorizer().ResolveConnections(ctx, &s)
}

func (a *API) named(ctx context.Context, in ScenarioInput) (engine.Scenario, error) {
	given := 0
	for _, there := range []bool{in.TemplateID != "", in.TemplateName != "", in.Source != "", in.Scenario != nil} {
		if there {
			given++
		}
	}
	if given != 1 {
		p := httpx.Field("template_id", "is needed, or one of template_name, source and scenario",
			"give exactly one of the four")
		p.Detail = "The request must say what to run, in exactly one way."
		return engine.Scenario{}, p
	}
	if in.TemplateID != "" || in.TemplateName != "" {
		return a.fromTemplate(ctx, in)
	}
	source := []byte(in.Source)
	if in.Scenario != nil {
		source = in.Scenario.RawMessage
	}
	return a.parse(source, in.Set, engine.Scenario{})
}

func (a *API) fromTemplate(ctx context.Context, in ScenarioInput) (engine.Scenario, error) {
	t, err := a.template(ctx, in.TemplateID, in.TemplateName)
	if err != nil {
		return engine.Scenario{}, err
	}
	s := t.Config
	if len(in.Set) > 0 {
		source := []byte(t.Source)
		if len(source) == 0 {
			hidden := t.Config
			a.hideScenario(&hidden)
			if source, err = json.Marshal(hidden); err != nil {
				return engine.Scenario{}, err
			}
		}
		if s, err = a.parse(source, in.Set, t.Config); err != nil {
			return engine.Scenario{}, err
		}
	}
	s.TemplateID, s.TemplateName = t.TemplateID, t.Name
	return s, nil
}

// template finds a template by id or name; what is missing is a 404 when it is
// the address, and a wrong field when it is in a body.
func (a *API) template(ctx context.Context, id, name string) (store.Template, error) {
	var t store.Template
	err := store.ErrNotFound
	field, value := "template_id", id
	switch {
	case id == "":
		field, value = "template_name", name
		t, err = a.Store.TemplateByName(ctx, name)
	case wellFormedID(id):
		t, err = a.Store.Template(ctx, id)
	}
	if errors.Is(err, store.ErrNotFound) {
		p := httpx.NotFound("template", value)
		p.Errors = []engine.FieldError{{Field: field, Message: "names no template", Hint: "GET /api/templates lists them"}}
		return t, p
	}
	return t, err
}

// parse reads a document with fields replaced. A masked password is taken from
// stored, the scenario that the document was read from.
func (a *API) parse(source []byte, set map[string]any, stored engine.Scenario) (engine.Scenario, error) {
	paths := make([]string, 0, len(set))
	for path := range set {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	fields := make([]template.Assignment, 0, len(paths))
	for _, path := range paths {
		value, ok := set[path].(string)
		if !ok {
			text, err := json.Marshal(set[path])
			if err != nil {
				return engine.Scenario{}, err
			}
			value = string(text)
		}
		fields = append(fields, template.Assignment{Path: path, Value: value})
	}
	s, err := template.ParseSet(source, fields)
	if err != nil {
		return engine.Scenario{}, err
	}
	s.TemplateID, s.TemplateName = "", ""
	if err := template.UnmaskRules(&s, stored); err != nil {
		return s, err
	}
	for _, c := range s.Connections() {
		if err := a.unmask(c.Ref, a.storedFor(*c.Ref, stored), c.Field); err != nil {
			return s, err
		}
	}
	return s, nil
}

// storedFor is the connection of stored whose secret a masked one may stand for.
func (a *API) storedFor(c engine.ConnectionRef, stored engine.Scenario) engine.ConnectionRef {
	for _, old := range stored.Connections() {
		if old.Ref.Inline() && old.Ref.Driver == c.Driver && a.Secrets.Hide(c.Driver, old.Ref.DSN) == c.DSN {
			return *old.Ref
		}
	}
	return engine.ConnectionRef{}
}

// unmask puts the stored secret back where the document has a mask; field is the connection's path.
func (a *API) unmask(c *engine.ConnectionRef, stored engine.ConnectionRef, field string) error {
	if c.DSNSealed != "" {
		return engine.InvalidField(field+".dsn_sealed", "cannot be given", "give the dsn, or the name of a saved connection")
	}
	if !c.Inline() {
		return nil
	}
	if !a.Secrets.Masked(c.Driver, c.DSN) {
		return dsnField(field+".dsn", a.Secrets.Validate(c.Driver, c.DSN))
	}
	same := stored.Inline() && c.Driver == stored.Driver && c.DSN == a.Secrets.Hide(c.Driver, stored.DSN)
	switch {
	case same && stored.DSNSealed != "":
		c.DSNSealed = stored.DSNSealed
	case same && !a.Secrets.Masked(c.Driver, stored.DSN):
		c.DSN = stored.DSN
	default:
		return engine.InvalidField(field+".dsn", "has *** in the place of its password",
			"type the password, or use a saved connection")
	}
	return nil
}
