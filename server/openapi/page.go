package openapi

import (
	_ "embed"
	"fmt"
	"html"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// pageHead is the page until its body begins.
//
//go:embed page.html
var pageHead string

// docsPage is a page that grows. It is written without html/template, which finds methods by
// names that the linker does not know: it would keep every method of the program
// (docs/decisions/0035-methods-that-nothing-calls.md).
type docsPage struct{ strings.Builder }

// add writes markup; each %s is a text, which is escaped.
func (p *docsPage) add(markup string, texts ...string) {
	args := make([]any, len(texts))
	for i, t := range texts {
		args[i] = html.EscapeString(t)
	}
	fmt.Fprintf(p, markup, args...)
}

// Page writes the document as one page. Its only script searches it, and is a file of the page's
// (ui/public/docs-search.js).
func Page(doc *huma.OpenAPI) []byte {
	p := &docsPage{}
	p.WriteString(pageHead)
	p.add("<h1>%s API</h1>\n", doc.Info.Title)
	p.add(`<p>Version %s · <a href="/api/openapi.json">openapi.json</a> · `+
		`<a href="/api/templates/schema">JSON Schema of a template</a></p>`+"\n", doc.Info.Version)
	p.add("<p>%s</p>\n", doc.Info.Description)
	p.index(doc)
	for _, tag := range doc.Tags {
		p.add(`<section id="%s"><h2>%s</h2><p>%s</p>`+"\n", tag.Name, tag.Name, tag.Description)
		for _, path := range sortedKeys(doc.Paths) {
			for _, o := range operations(doc.Paths[path]) {
				if o.Tags[0] == tag.Name {
					p.operation(o)
				}
			}
		}
		p.add("</section>\n")
	}
	p.add(`<section id="schemas"><h2>Schemas</h2>` + "\n")
	schemas := doc.Components.Schemas.Map()
	for _, name := range sortedKeys(schemas) {
		p.schema(name, schemas[name])
	}
	p.add("</section>\n</body>\n</html>\n")
	return []byte(p.String())
}

// index lists every operation under its tag, and has the box that the page's script searches with. Without scripts the
// box stays hidden.
func (p *docsPage) index(doc *huma.OpenAPI) {
	p.add(`<label id="search" hidden>Search <input type="search" placeholder="path, summary, parameter or schema"> ` +
		`<output></output></label>` + "\n<nav>")
	for _, tag := range doc.Tags {
		p.add(`<details><summary><a href="#%s">%s</a></summary><ul>`, url.PathEscape(tag.Name), tag.Name)
		for _, path := range sortedKeys(doc.Paths) {
			for _, o := range operations(doc.Paths[path]) {
				if o.Tags[0] == tag.Name {
					p.add(`<li><a href="#op-%s"><b>%s</b> <code>%s</code></a> %s</li>`, o.OperationID, o.Method, o.Path, o.Summary)
				}
			}
		}
		p.add("</ul></details>\n")
	}
	p.add(`<a href="#schemas">Schemas</a></nav>` + "\n")
}

// operations are those of a path, in the order of reading, creating, changing and deleting.
func operations(item *huma.PathItem) []*huma.Operation {
	all := []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete}
	return slices.DeleteFunc(all, func(o *huma.Operation) bool { return o == nil })
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

func (p *docsPage) operation(o *huma.Operation) {
	class := ""
	if o.Deprecated {
		class = ` class="old"`
	}
	p.add(
		`<details id="op-%s"`+class+"><summary><b>%s</b><code>%s</code><span>%s</span></summary>\n",
		o.OperationID,
		o.Method,
		o.Path,
		o.Summary,
	)
	if o.Description != "" {
		p.add("<p>%s</p>\n", o.Description)
	}
	if len(o.Parameters) > 0 {
		p.add("<table><tr><th>Parameter</th><th>In</th><th>Meaning</th></tr>")
		for _, q := range o.Parameters {
			required := ""
			if q.Required {
				required = ", required"
			}
			p.add("<tr><td><code>%s</code></td><td>%s</td><td>%s</td></tr>", q.Name, q.In+required, q.Description)
		}
		p.add("</table>\n")
	}
	if o.RequestBody != nil {
		p.content("Body", o.RequestBody.Content)
	}
	statuses := sortedKeys(o.Responses)
	for _, status := range slices.Backward(statuses) {
		if content := o.Responses[status].Content; status < "300" && content["application/json"] != nil {
			p.content("Answer", content)
			break
		}
	}
	p.add("<h3>Statuses</h3><p>%s</p>\n</details>\n", strings.Join(statuses, " "))
}

// content writes the type of a body in JSON.
func (p *docsPage) content(title string, content map[string]*huma.MediaType) {
	if media := content["application/json"]; media != nil {
		p.add("<h3>%s</h3><p>", title)
		p.WriteString(typeOf(media.Schema))
		p.add("</p>\n")
	}
}

func (p *docsPage) schema(name string, s *huma.Schema) {
	p.add(`<section class="schema"><h3 id="schema-%s">%s</h3>`+"\n<table>", name, name)
	for _, property := range sortedKeys(s.Properties) {
		optional := "<br><small>optional</small>"
		if slices.Contains(s.Required, property) {
			optional = ""
		}
		p.add("<tr><td><code>%s</code>"+optional+"</td><td>", property)
		p.WriteString(typeOf(s.Properties[property]))
		p.add("</td><td>%s</td></tr>", s.Properties[property].Description)
	}
	p.add("</table></section>\n")
}

// typeOf is the markup of a schema: a link to a component, or the type with its bounds.
func typeOf(s *huma.Schema) string {
	switch {
	case s == nil:
		return "any"
	case s.Ref != "":
		name := html.EscapeString(s.Ref[strings.LastIndex(s.Ref, "/")+1:])
		return `<a href="#schema-` + name + `">` + name + `</a>`
	case len(s.OneOf) > 0, len(s.AnyOf) > 0:
		var parts []string
		for _, one := range append(append([]*huma.Schema(nil), s.OneOf...), s.AnyOf...) {
			parts = append(parts, typeOf(one))
		}
		return strings.Join(parts, " or ")
	case s.Type == huma.TypeArray:
		return "list of " + typeOf(s.Items)
	case len(s.Enum) > 0:
		var parts []string
		for _, v := range s.Enum {
			if v == nil {
				parts = append(parts, "null")
			} else {
				parts = append(parts, "<code>"+html.EscapeString(fmt.Sprint(v))+"</code>")
			}
		}
		return strings.Join(parts, " ")
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
		return "map of " + typeOf(values)
	}
	return html.EscapeString(text)
}
