package api

import (
	"bytes"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/store"
)

// hideScenario removes what must not leave the server from a scenario.
func (a *API) hideScenario(s *engine.Scenario) {
	*s = s.Clone()
	template.MaskRules(s)
	for _, c := range s.Connections() {
		c.Ref.DSNSealed, *c.ID = "", "" // a document has names
		if c.Ref.DSN != "" {
			c.Ref.DSN = a.Secrets.Hide(c.Ref.Driver, c.Ref.DSN)
		}
	}
}

func (a *API) hideRun(r engine.Run) engine.Run {
	a.hideScenario(&r.Scenario)
	return r
}

// hideTemplate does the same for a template, in its source too.
func (a *API) hideTemplate(t store.Template) store.Template {
	// Templates that were saved by earlier versions have their comments as they were written.
	t.Source = string(template.MaskComments(a.hideSource([]byte(t.Source), t.Config)))
	a.hideScenario(&t.Config)
	return t
}

// hideSource returns a template's text with the secret of its inline connection
// masked. Where that cannot be done for certain it returns the scenario as YAML.
func (a *API) hideSource(source []byte, parsed engine.Scenario) []byte {
	if len(source) == 0 {
		return source
	}
	hidden, inline := source, false
	for _, c := range parsed.Connections() {
		if !c.Ref.Inline() || c.Ref.DSN == "" {
			continue
		}
		inline = true
		if clear := a.Secrets.Hide(c.Ref.Driver, c.Ref.DSN); clear != c.Ref.DSN {
			hidden = bytes.ReplaceAll(hidden, []byte(c.Ref.DSN), []byte(clear))
		}
	}
	if hidden = []byte(template.MaskRulesIn(string(hidden), parsed.Rules)); !inline && len(hidden) > 0 {
		return hidden
	}
	second, err := template.Parse(hidden)
	if err == nil && !slices.ContainsFunc(second.Connections(), func(c engine.Connection) bool {
		return c.Ref.DSN != "" && c.Ref.DSN != a.Secrets.Hide(c.Ref.Driver, c.Ref.DSN)
	}) {
		return hidden
	}
	a.hideScenario(&parsed)
	plain, err := template.YAML(parsed)
	if err != nil {
		return nil
	}
	return plain
}
