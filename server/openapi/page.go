package openapi

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed page.html
var docsPage string

type docsOperation struct {
	Method, Path, Summary, Description string
	Deprecated                         bool
	Parameters                         []*huma.Param
	Body, Answer                       template.HTML
	Answers                            []string
}

type docsGroup struct {
	Name, Description string
	Operations        []docsOperation
}

type docsSchema struct {
	Name       string
	Properties []docsProperty
}

type docsProperty struct {
	Name        string
	Type        template.HTML
	Required    bool
	Description string
}

// Page writes the document as one page without scripts.
func Page(doc *huma.OpenAPI) ([]byte, error) {
	t, err := template.New("docs").Parse(docsPage)
	if err != nil {
		return nil, fmt.Errorf("parsing the page of the API: %w", err)
	}
	groups := make([]docsGroup, len(doc.Tags))
	for i, tag := range doc.Tags {
		groups[i] = docsGroup{Name: tag.Name, Description: tag.Description}
	}
	for _, path := range sortedKeys(doc.Paths) {
		item := doc.Paths[path]
		for _, o := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
			if o == nil {
				continue
			}
			i := slices.IndexFunc(groups, func(g docsGroup) bool { return g.Name == o.Tags[0] })
			groups[i].Operations = append(groups[i].Operations, documentOf(o))
		}
	}
	var schemas []docsSchema
	for _, name := range sortedKeys(doc.Components.Schemas.Map()) {
		schemas = append(schemas, docsSchema{Name: name, Properties: propertiesOf(doc.Components.Schemas.Map()[name])})
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{"Info": doc.Info, "Groups": groups, "Schemas": schemas})
	if err != nil {
		return nil, fmt.Errorf("writing the page of the API: %w", err)
	}
	return out.Bytes(), nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func documentOf(o *huma.Operation) docsOperation {
	d := docsOperation{Method: o.Method, Path: o.Path, Summary: o.Summary, Description: o.Description,
		Deprecated: o.Deprecated, Parameters: o.Parameters}
	if o.RequestBody != nil {
		if media := o.RequestBody.Content["application/json"]; media != nil {
			d.Body = typeOf(media.Schema)
		}
	}
	for _, status := range sortedKeys(o.Responses) {
		d.Answers = append(d.Answers, status)
		if media := o.Responses[status].Content["application/json"]; media != nil && status < "300" {
			d.Answer = typeOf(media.Schema)
		}
	}
	return d
}

func propertiesOf(s *huma.Schema) []docsProperty {
	var out []docsProperty
	for _, name := range sortedKeys(s.Properties) {
		p := s.Properties[name]
		out = append(out, docsProperty{Name: name, Type: typeOf(p), Required: slices.Contains(s.Required, name),
			Description: p.Description})
	}
	return out
}

// typeOf words a schema: a link to a component, or the type with its bounds.
func typeOf(s *huma.Schema) template.HTML {
	esc := template.HTMLEscapeString
	switch {
	case s == nil:
		return "any"
	case s.Ref != "":
		name := esc(s.Ref[strings.LastIndex(s.Ref, "/")+1:])
		//nolint:gosec // made of our own document and escaped
		return template.HTML(
			`<a href="#schema-` + name + `">` + name + `</a>`,
		)
	case len(s.OneOf) > 0, len(s.AnyOf) > 0:
		var parts []string
		for _, one := range append(append([]*huma.Schema(nil), s.OneOf...), s.AnyOf...) {
			parts = append(parts, string(typeOf(one)))
		}
		return template.HTML(strings.Join(parts, " or ")) //nolint:gosec // made of our own document and escaped
	case s.Type == huma.TypeArray:
		return "list of " + typeOf(s.Items)
	case len(s.Enum) > 0:
		var parts []string
		for _, v := range s.Enum {
			if v == nil {
				parts = append(parts, "null")
			} else {
				parts = append(parts, "<code>"+esc(fmt.Sprint(v))+"</code>")
			}
		}
		return template.HTML(strings.Join(parts, " ")) //nolint:gosec // made of our own document and escaped
	}
	text := s.Type
	if text == "" {
		text = "any"
	}
	if s.Format != "" {
		text += " (" + s.Format + ")"
	}
	if s.Minimum != nil && s.Maximum != nil {
		text += fmt.Sprintf(" %v … %v", *s.Minimum, *s.Maximum)
	}
	if s.Nullable {
		text += " or null"
	}
	if values, ok := s.AdditionalProperties.(*huma.Schema); ok && s.Type == huma.TypeObject {
		return template.HTML("map of ") + typeOf(values)
	}
	return template.HTML(esc(text)) //nolint:gosec // made of our own document and escaped
}
