package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// TemplateList is every template.
type TemplateList struct {
	Templates []store.Template `json:"templates"`
}

// TemplateInput is a template as text or as JSON; exactly one is given.
type TemplateInput struct {
	Source string    `json:"source,omitempty" doc:"The template's text, YAML or JSON; comments are kept."`
	Config *Document `json:"config,omitempty" doc:"Or the scenario as JSON."`
	// Access is left as it is by a change that does not name it.
	Access *auth.AccessInput `json:"access,omitempty"`
}

type templateCreate struct{ Body TemplateInput }

type templateUpdate struct {
	IDInput
	Body struct {
		TemplateInput
		Version int64 `json:"version" minimum:"1" maximum:"9007199254740991" doc:"The version that was edited; 409 when another has been saved since."`
		// KeepEqual is as for connections.
		KeepEqual bool `json:"keep_equal,omitempty" doc:"Save nothing, and keep the version, when the template says all of this already, passwords too. Comments are not compared."`
	}
}

// Validation is what checking a template found.
type Validation struct {
	Valid  bool                `json:"valid"`
	Errors []engine.FieldError `json:"errors"`
	// Warnings are names that stand for nothing that this server has: the template can be saved, and no run of it begins.
	Warnings []engine.FieldError `json:"warnings" nullable:"false" doc:"Plugins and connections that it names and this server does not have. They do not make it invalid."`
	// Config is the scenario with its defaults filled in, when valid.
	Config *engine.Scenario `json:"config"`
	Source string           `json:"source"`
}

const schemaType = "application/schema+json"

type schemaOutput struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (a *API) registerTemplates() {
	handle(a, op(http.MethodGet, "/api/templates", "list-templates", tagTemplates, "List templates"), a.listTemplates)
	create := op(http.MethodPost, "/api/templates", "create-template", tagTemplates, "Save a template",
		http.StatusConflict)
	create.DefaultStatus = http.StatusCreated
	handle(a, create, a.createTemplate)
	schema := op(http.MethodGet, "/api/templates/schema", "template-schema", tagTemplates, "The JSON Schema of a template")
	schema.Responses = map[string]*huma.Response{"200": {Description: "JSON Schema 2020-12",
		Content: map[string]*huma.MediaType{schemaType: {Schema: &huma.Schema{Type: huma.TypeObject}}}}}
	handle(a, schema, func(context.Context, *struct{}) (*schemaOutput, error) {
		return &schemaOutput{ContentType: schemaType, Body: template.Schema()}, nil
	})
	check := op(http.MethodPost, "/api/templates/validate", "validate-template", tagTemplates,
		"Check a template without saving it")
	check.Description = "Answers 200 for a wrong template too: `valid` is false and `errors` names its fields."
	handle(a, check, a.validateTemplate)
	handle(a, op(http.MethodGet, "/api/templates/{id}", "get-template", tagTemplates, "Read a template",
		http.StatusNotFound), a.getTemplate)
	handle(a, op(http.MethodPut, "/api/templates/{id}", "update-template", tagTemplates,
		"Save a new version of a template", http.StatusNotFound, http.StatusConflict), a.updateTemplate)
	remove := op(http.MethodDelete, "/api/templates/{id}", "delete-template", tagTemplates, "Delete a template",
		http.StatusNotFound, http.StatusConflict)
	remove.DefaultStatus = http.StatusNoContent
	handle(a, remove, a.deleteTemplate)
}

func (a *API) listTemplates(ctx context.Context, _ *struct{}) (*body[TemplateList], error) {
	list, err := a.Store.ListTemplates(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]store.Template, len(list))
	for i, t := range list {
		out[i] = a.hideTemplate(t)
	}
	return &body[TemplateList]{TemplateList{Templates: out}}, nil
}

// text returns the document that the input holds, as bytes.
func (in TemplateInput) text() ([]byte, error) {
	switch {
	case in.Source != "" && in.Config != nil, in.Source == "" && in.Config == nil:
		return nil, engine.InvalidField("source", "or config is needed, and not both",
			"send the text as source, or the scenario as config")
	case in.Config != nil:
		return in.Config.RawMessage, nil
	}
	return []byte(in.Source), nil
}

func (a *API) parseTemplate(in TemplateInput, stored engine.Scenario) (t store.Template, err error) {
	text, err := in.text()
	if err != nil {
		return t, err
	}
	s, err := a.parse(text, nil, stored)
	if err != nil {
		return t, err
	}
	// The store seals the secret of an inline connection and removes it from the text.
	return store.Template{Name: s.Name, Description: s.Description, Config: s, Source: in.Source}, nil
}

func (a *API) createTemplate(ctx context.Context, in *templateCreate) (*body[store.Template], error) {
	t, err := a.parseTemplate(in.Body, engine.Scenario{})
	if err != nil {
		return nil, err
	}
	if err := a.usablePlugins(ctx, t.Config); err != nil {
		return nil, err
	}
	user := a.identity(ctx).User
	t.CreatedBy = user.Name
	if t.Access, err = a.access(ctx, auth.NewAccess(user), in.Body.Access); err != nil {
		return nil, err
	}
	saved, err := a.Store.CreateTemplate(ctx, t)
	if err != nil {
		return nil, err
	}
	a.audit.Record(ctx, user.UserID, "template.create", saved.TemplateID, saved.Name)
	return &body[store.Template]{a.withSource(saved)}, nil
}

// withSource hides secrets and gives a template that came as JSON a text to edit.
func (a *API) withSource(t store.Template) store.Template {
	t = a.hideTemplate(t)
	if t.Source == "" {
		if text, err := template.YAML(t.Config); err == nil {
			t.Source = string(text)
		}
	}
	return t
}

func (a *API) getTemplate(ctx context.Context, in *IDInput) (*body[store.Template], error) {
	t, err := a.storedTemplate(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &body[store.Template]{a.withSource(t)}, nil
}

func (a *API) storedTemplate(ctx context.Context, id string) (store.Template, error) {
	if !wellFormedID(id) {
		return store.Template{}, httpx.NotFound("template", id)
	}
	t, err := a.Store.Template(ctx, id)
	return t, notFoundAs(err, "template", id)
}

func (a *API) updateTemplate(ctx context.Context, in *templateUpdate) (*body[store.Template], error) {
	old, err := a.storedTemplate(ctx, in.ID)
	if err == nil {
		err = a.mayChange(ctx, "template", old.Name, old.Access)
	}
	if err != nil {
		return nil, err
	}
	t, err := a.parseTemplate(in.Body.TemplateInput, old.Config)
	if err != nil {
		return nil, err
	}
	if old.Version != in.Body.Version {
		return nil, versionConflict(old.Version)
	}
	if err := a.usablePlugins(ctx, t.Config); err != nil {
		return nil, err
	}
	t.TemplateID, t.Version, t.CreatedBy = old.TemplateID, in.Body.Version, old.CreatedBy
	if t.Access, err = a.access(ctx, old.Access, in.Body.Access); err != nil {
		return nil, err
	}
	if in.Body.KeepEqual && reflect.DeepEqual(t.Access, old.Access) {
		if same, err := a.sameTemplate(ctx, old.Config, t.Config); same || err != nil {
			return &body[store.Template]{a.withSource(old)}, err
		}
	}
	user := a.identity(ctx).User
	t.Editor = engine.Actor{ID: user.UserID, Name: user.Name}
	saved, err := a.Store.UpdateTemplate(ctx, t)
	if errors.Is(err, store.ErrConflict) {
		if now, rerr := a.Store.Template(ctx, in.ID); rerr == nil && now.Version != in.Body.Version {
			return nil, versionConflict(now.Version)
		}
		return nil, err
	}
	if err != nil {
		return nil, notFoundAs(err, "template", in.ID)
	}
	a.audit.Record(ctx, a.identity(ctx).User.UserID, "template.update", saved.TemplateID, saved.Name)
	return &body[store.Template]{a.withSource(saved)}, nil
}

// sameTemplate reports whether two scenarios are the same, passwords included.
func (a *API) sameTemplate(ctx context.Context, old, s engine.Scenario) (bool, error) {
	texts := make([]string, 2)
	for i, shown := range []engine.Scenario{old.Clone(), s.Clone()} {
		a.hideScenario(&shown)
		text, err := json.Marshal(shown)
		if err != nil {
			return false, fmt.Errorf("comparing templates: %w", err)
		}
		texts[i] = string(text)
	}
	if texts[0] != texts[1] {
		return false, nil
	}
	of, with := old.Connections(), s.Connections()
	for i := range of {
		if !of[i].Ref.Inline() {
			continue
		}
		_, one, err := a.Store.OpenDSN(ctx, *of[i].Ref)
		if err != nil {
			return false, err
		}
		if _, other, err := a.Store.OpenDSN(ctx, *with[i].Ref); err != nil || one.Reveal() != other.Reveal() {
			return false, err
		}
	}
	for i := range old.Rules {
		one, err := a.Store.OpenURL(ctx, old.Rules[i])
		if err != nil {
			return false, err
		}
		if other, err := a.Store.OpenURL(ctx, s.Rules[i]); err != nil || one.Reveal() != other.Reveal() {
			return false, err
		}
	}
	return true, nil
}

func versionConflict(current int64) error {
	return &engine.Error{Code: engine.CodeConflict, Message: "The template has been changed since you opened it.",
		Hint:   "Load it again and repeat your changes.",
		Fields: []engine.FieldError{{Field: "version", Message: fmt.Sprintf("is no longer current: that is %d", current)}}}
}

func (a *API) deleteTemplate(ctx context.Context, in *IDInput) (*nothing, error) {
	t, err := a.storedTemplate(ctx, in.ID)
	if err == nil {
		err = a.mayChange(ctx, "template", t.Name, t.Access)
	}
	if err != nil {
		return nil, err
	}
	if err := a.Store.DeleteTemplate(ctx, in.ID); err != nil {
		return nil, notFoundAs(err, "template", in.ID)
	}
	a.audit.Record(ctx, a.identity(ctx).User.UserID, "template.delete", in.ID, t.Name)
	return &nothing{}, nil
}

func (a *API) validateTemplate(ctx context.Context, in *templateCreate) (*body[Validation], error) {
	text, err := in.Body.text()
	if err != nil {
		return nil, err
	}
	out := Validation{Errors: []engine.FieldError{}, Warnings: a.unknownNames(ctx, text), Source: in.Body.Source}
	s, err := template.Parse(text)
	switch {
	case engine.HasCode(err, engine.CodeInternal):
		return nil, err
	case err != nil:
		e := engine.AsError(err)
		out.Errors = append(out.Errors, e.Fields...)
		if len(out.Errors) == 0 {
			out.Errors = append(out.Errors, engine.FieldError{Message: e.Message, Hint: e.Hint})
		}
		return &body[Validation]{out}, nil
	}
	out.Valid = true
	if out.Source == "" {
		var pretty []byte
		if pretty, err = template.YAML(s); err != nil {
			return nil, fmt.Errorf("writing the template as YAML: %w", err)
		}
		out.Source = string(pretty)
	}
	// The text is the caller's own, so its password is not hidden from her here;
	// the form works on config, which never carries one in clear.
	a.hideScenario(&s)
	out.Config = &s
	return &body[Validation]{out}, nil
}

// unknownNames are the names in a template that stand for nothing here. What cannot be looked up is not judged.
func (a *API) unknownNames(ctx context.Context, text []byte) []engine.FieldError {
	var here KnownNames
	var err error
	if here.Plugins, err = a.Plugins.Entries(ctx); err != nil {
		here.Plugins = nil
	}
	if here.Connections, err = a.Store.ListConnections(ctx); err != nil {
		here.Connections = nil
	}
	return here.Unknown(template.References(text))
}

var _ json.Marshaler = Document{}
