package fake

import (
	"cmp"
	"context"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/store"
)

type templateRow struct {
	store.Template // without its config
	config         []byte
}

func (t *templateRow) view() (store.Template, error) {
	out := t.Template
	var err error
	out.Config, err = read[engine.Scenario]("template", t.config)
	return out, err
}

// byName finds a template; nil when there is none.
func (s *Store) byName(name string) *templateRow {
	for _, t := range s.templates {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Template implements store.Templates.
func (s *Store) Template(ctx context.Context, id string) (store.Template, error) {
	return s.template(ctx, id, func() *templateRow { return s.templates[id] })
}

// TemplateByName implements store.Templates.
func (s *Store) TemplateByName(ctx context.Context, name string) (store.Template, error) {
	return s.template(ctx, name, func() *templateRow { return s.byName(name) })
}

func (s *Store) template(ctx context.Context, key string, find func() *templateRow) (store.Template, error) {
	if err := s.lock(ctx); err != nil {
		return store.Template{}, err
	}
	defer s.mu.Unlock()
	if t := find(); t != nil {
		return t.view()
	}
	return store.Template{}, notFound("template", key)
}

// ListTemplates implements store.Templates.
func (s *Store) ListTemplates(ctx context.Context) ([]store.Template, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []store.Template
	for _, t := range sorted(s.templates, func(a, b *templateRow) int { return strings.Compare(a.Name, b.Name) }) {
		shown, err := t.view()
		if err != nil {
			return nil, err
		}
		shown.Source, shown.Config.Workload.Feed, shown.Config.Workload.Params = "", nil, nil
		out = append(out, shown)
	}
	return out, nil
}

// CreateTemplate implements store.Templates. A source that spells a password in
// a way that cannot be hidden is not kept.
func (s *Store) CreateTemplate(ctx context.Context, t store.Template) (store.Template, error) {
	if err := s.lock(ctx); err != nil {
		return t, err
	}
	defer s.mu.Unlock()
	row := &templateRow{Template: t}
	row.TemplateID, row.Version = cmp.Or(t.TemplateID, newID()), 1
	row.CreatedAt = engine.At(now())
	row.UpdatedAt = row.CreatedAt
	if err := s.sealTemplate(row, t.Config, nil); err != nil {
		return t, err
	}
	switch {
	case t.Name == "":
		return t, unnamed("template")
	case s.byName(t.Name) != nil:
		return t, store.NameTaken("template", t.Name)
	case s.templates[row.TemplateID] != nil:
		return t, conflict("There is a template of this id already.", "")
	}
	s.templates[row.TemplateID] = row
	return row.view()
}

// UpdateTemplate implements store.Templates.
func (s *Store) UpdateTemplate(ctx context.Context, t store.Template) (store.Template, error) {
	if err := s.lock(ctx); err != nil {
		return t, err
	}
	defer s.mu.Unlock()
	old := s.templates[t.TemplateID]
	if old == nil {
		return t, notFound("template", t.TemplateID)
	}
	was, err := old.view()
	if err != nil {
		return t, err
	}
	row := &templateRow{Template: t}
	row.Version, row.CreatedBy, row.CreatedAt, row.UpdatedAt = old.Version+1, old.CreatedBy, old.CreatedAt,
		engine.At(now())
	if err := s.sealTemplate(row, t.Config, &was.Config); err != nil {
		return t, err
	}
	if other := s.byName(t.Name); other != nil && other != old {
		return t, store.NameTaken("template", t.Name)
	}
	if old.Version != t.Version {
		return t, conflict("The template was changed by someone else meanwhile.", "Load it again and repeat your change.")
	}
	s.templates[t.TemplateID] = row
	return row.view()
}

// sealTemplate seals the secrets of every inline connection, and masks those in
// comments of the source. A connection whose password is hidden keeps that of the
// connection of earlier with the same address.
func (s *Store) sealTemplate(row *templateRow, config engine.Scenario, earlier *engine.Scenario) (err error) {
	config = config.Clone()
	for _, c := range config.Connections() {
		if c.Ref.Inline() {
			row.Source = template.MaskSecrets(row.Source, *c.Ref, s.secrets)
		}
		if *c.Ref, err = s.seal(*c.Ref, template.SameAddress(earlier, *c.Ref), c.Field); err != nil {
			return err
		}
	}
	row.Source = template.MaskRulesIn(row.Source, config.Rules)
	if err := template.SealRules(&config, earlier, s.sealURL); err != nil {
		return err
	}
	row.Source = store.CleanText(string(template.MaskComments([]byte(row.Source))))
	row.Config = engine.Scenario{}
	row.config, err = document("template", config)
	return err
}

// DeleteTemplate implements store.Templates. Runs made from it stay.
func (s *Store) DeleteTemplate(ctx context.Context, id string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.templates[id] == nil {
		return notFound("template", id)
	}
	delete(s.templates, id)
	for _, r := range s.runs {
		if r.row.TemplateID == id {
			r.row.TemplateID = ""
		}
	}
	for _, m := range s.matrices {
		if m.TemplateID == id {
			m.TemplateID = ""
		}
	}
	return nil
}
