package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
)

// badTexts are what somebody may write into any field, as JSON writes it: some of it no JSON should say.
var badTexts = map[string]string{
	"HTML":           `"<script>window.owned=1</script><img src=x onerror=owned()>"`,
	"an attribute":   `"\" autofocus onfocus=owned() x='"`,
	"escapes":        `"a\u001b]8;;http://x\u0007b\u001b]52;c;aGk=\u0007\u001b[2J\u009b31m\u007f"`,
	"turned":         `"\u202egnp.exe\u2066\u200f"`,
	"hidden":         `"a\u200bb\ufeff\u00ad"`,
	"long":           `"` + strings.Repeat("x", 10_000) + `"`,
	"a formula":      `"=HYPERLINK(\"http://x\",\"a\")"`,
	"a plus":         `"+1+cmd|' /C calc'!A0"`,
	"a minus":        `"-1+1"`,
	"an at":          `"@SUM(1+1)"`,
	"a tab":          `"\t=1+1"`,
	"a return":       `"\r\n=1+1\r\nSet-Cookie: a=b"`,
	"NUL":            `"a\u0000b"`,
	"half a pair":    `"a\ud800b"`,
	"no UTF-8":       "\"a\xffb\xc3\"",
	"of the world":   `"näme 日本 🙂 عربى"`,
	"SQL":            `"'; DROP TABLE users; --"`,
	"another folder": `"../../../etc/passwd"`,
	"nothing":        `""`,
	"a space":        `" "`,
}

// textMarker stands for the text in a request that is being made.
const textMarker = "the-text-goes-here"

// textField is a place at which the API takes a text, as its document says.
type textField struct {
	method, path string
	// in is "body", "path" or "query"; at is the way to it: "hooks", "[]", "name". "*" is a value under any name, "*key"
	// the name.
	in string
	at []string
}

func (f textField) operation() string { return f.method + " " + f.path }
func (f textField) String() string    { return f.operation() + " " + f.in + " " + strings.Join(f.at, ".") }

type document map[string]any

func (d document) at(v any, steps ...string) any {
	for _, step := range steps {
		m, _ := v.(map[string]any)
		v = m[step]
	}
	return v
}

// resolved is a schema, where another one is meant that.
func (d document) resolved(schema any) map[string]any {
	m, _ := schema.(map[string]any)
	for {
		ref, ok := m["$ref"].(string)
		if !ok {
			return m
		}
		m, _ = d.at(map[string]any(d), strings.Split(strings.TrimPrefix(ref, "#/"), "/")...).(map[string]any)
	}
}

// texts are the ways to all texts below a schema that are not one of a few words.
func (d document) texts(schema any, route []string, found *[][]string) {
	s := d.resolved(schema)
	if len(route) > 12 {
		return
	}
	step := func(name string) []string { return append(slices.Clone(route), name) }
	is := func(kind string) bool {
		list, _ := s["type"].([]any)
		return s["type"] == kind || slices.Contains(list, any(kind))
	}
	if is("string") && s["enum"] == nil && s["format"] != "date-time" && s["format"] != "binary" {
		*found = append(*found, route)
	}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		d.texts(properties[name], step(name), found)
	}
	if values, ok := s["additionalProperties"].(map[string]any); ok {
		*found = append(*found, step("*key"))
		d.texts(values, step("*"), found)
	}
	if items, ok := s["items"]; ok {
		d.texts(items, step("[]"), found)
	}
	for _, several := range []string{"oneOf", "anyOf", "allOf"} {
		list, _ := s[several].([]any)
		for _, one := range list {
			d.texts(one, route, found)
		}
	}
}

// textFields are all texts that the API takes.
func (d document) textFields() (list []textField) {
	paths, _ := d["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			o, ok := d.at(paths[path], method).(map[string]any)
			if !ok {
				continue
			}
			parameters, _ := o["parameters"].([]any)
			for _, p := range parameters {
				var found [][]string
				d.texts(d.at(p, "schema"), nil, &found)
				if len(found) > 0 {
					list = append(list, textField{strings.ToUpper(method), path, d.at(p, "in").(string),
						[]string{d.at(p, "name").(string)}})
				}
			}
			var found [][]string
			d.texts(d.at(o, "requestBody", "content", "application/json", "schema"), nil, &found)
			for _, route := range found {
				if f := (textField{strings.ToUpper(method), path, "body", route}); !slices.ContainsFunc(
					list,
					func(o textField) bool {
						return o.String() == f.String()
					},
				) {
					list = append(list, f)
				}
			}
		}
	}
	return list
}

// with puts a value at a way into a document.
func with(document any, route []string, value any) any {
	if len(route) == 0 {
		return value
	}
	switch step := route[0]; step {
	case "[]":
		list, _ := document.([]any)
		if len(list) == 0 {
			list = []any{nil}
		}
		return append([]any{with(list[0], route[1:], value)}, list[1:]...)
	default:
		m, _ := document.(map[string]any)
		m = maps.Clone(m)
		if m == nil {
			m = map[string]any{}
		}
		switch step {
		case "*":
			m["any"] = with(nil, route[1:], value)
		case "*key":
			m[fmt.Sprint(value)] = "any"
		default:
			m[step] = with(m[step], route[1:], value)
		}
		return m
	}
}

// answerProblem is what is wrong with an answer to a bad text: it is one, or it says in words that this is none to
// take.
func answerProblem(a clitest.Response) string {
	if a.Status/100 == 2 {
		return textProblem(a)
	}
	var p struct {
		Code, Detail, Hint string
		Errors             []struct{ Field, Message string }
	}
	if a.MediaType() == "text/html" && a.Status >= 400 && a.Status < 500 { // for people
		return htmlWrong(a.Body)
	}
	if a.Status < 400 || a.Status >= 500 {
		return fmt.Sprintf("%d %.300s", a.Status, a.Body)
	}
	if err := json.Unmarshal(a.Body, &p); err != nil || p.Code == "" || len(p.Detail) < 10 || a.MediaType() !=
		"application/problem+json" {
		return fmt.Sprintf("no refusal in words: %d %s %.300s", a.Status, a.MediaType(), a.Body)
	}
	if p.Code == "invalid" && p.Hint == "" && len(p.Errors) == 0 {
		return fmt.Sprintf("a refusal that names neither field nor cure: %.300s", a.Body)
	}
	if strings.Contains(p.Detail, "control store refused") {
		return fmt.Sprintf("only the database noticed: %.300s", a.Body)
	}
	return textProblem(a)
}

// textProblem is what is wrong with an answer, whoever shows it: JSON is JSON, nothing in it is obeyed by a terminal.
func textProblem(a clitest.Response) string {
	if !strings.HasSuffix(a.MediaType(), "json") {
		return ""
	}
	if !json.Valid(a.Body) || !utf8.Valid(a.Body) {
		return fmt.Sprintf("no JSON: %.300q", a.Body)
	}
	return controlSequenceAt(string(a.Body))
}

// controlSequenceAt is where a terminal or a page would obey a text, and line ends and tabs are not.
func controlSequenceAt(text string) string {
	i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && textsafe.IsControl(r) })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("it has %+q", text[max(0, i-40):min(len(text), i+40)])
}

// TestBadTextsInEveryField puts each bad text into each text that the document of the API says it takes, and looks at
// what is answered; then at everything that shows what was stored. A field that is new is tried without being named
// here; an operation that is new needs a body in which the rest is right.
func TestBadTextsInEveryField(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	s := clitest.NewProgram(t).Serve("--allow-targets", "127.0.0.1", "--log-format", "json", "--refresh-workers", "1")
	k := &textFixture{LiveServer: s, ids: map[string]string{}}
	k.prepare()
	var d document
	if err := json.Unmarshal([]byte(s.MustGet("/api/openapi.json")), &d); err != nil {
		t.Fatal(err)
	}
	bodies := k.bodies()
	seen, requested, kept := map[string]bool{}, 0, 0
	for _, f := range append(d.textFields(), d.templates()...) {
		if why := skippedOperations[f.operation()]; why != "" {
			seen[f.operation()] = true
			continue
		}
		right, known := bodies[f.operation()]
		if f.in == "body" && !known {
			t.Errorf("%s: with which body is it right but for the text? say so in bodies()", f)
			continue
		}
		seen[f.operation()] = true
		for _, name := range slices.Sorted(maps.Keys(badTexts)) {
			path, body := k.request(f, right, badTexts[name])
			if path == "" {
				continue // the text is no part of an address
			}
			a := k.Exchange(f.method, path, body, k.caller(f)...)
			requested++
			if wrong := answerProblem(a); wrong != "" {
				t.Errorf("%s: %s: %s", f, name, wrong)
			}
			if a.Status/100 == 2 && f.method != http.MethodGet {
				kept++
			}
		}
	}
	for operation := range bodies {
		if !seen[operation] {
			t.Errorf("%s of bodies() is not there any more, or takes no text", operation)
		}
	}
	for operation := range skippedOperations {
		if !seen[operation] {
			t.Errorf("%s of elsewhere is not there any more, or takes no text", operation)
		}
	}
	t.Logf("%d requests, %d were taken", requested, kept)
	if requested < 3000 || kept < 200 {
		t.Errorf("%d requests, %d of which were taken: that is too few to have tried anything", requested, kept)
	}
	k.checkShown(d)
}

// request is one with a text at a place.
func (k *textFixture) request(f textField, right func() any, literal string) (path, body string) {
	var plain string
	if err := json.Unmarshal([]byte(literal), &plain); err != nil {
		plain = "a\xffb"
	}
	if strings.Contains(literal, "\xff") {
		plain = "a\xffb"
	}
	path = f.path
	for strings.Contains(path, "{") {
		name := path[strings.Index(path, "{")+1 : strings.Index(path, "}")]
		value := k.id(f.path, name)
		if f.in == "path" && f.at[0] == name {
			if value = url.PathEscape(plain); plain == "" {
				return "", ""
			}
			value = strings.ReplaceAll(value, ".", "%2E")
		}
		path = strings.Replace(path, "{"+name+"}", value, 1)
	}
	if f.in == "query" {
		path += "?" + f.at[0] + "=" + url.QueryEscape(plain)
	}
	if f.method == http.MethodGet || f.method == http.MethodDelete && right == nil {
		return path, ""
	}
	var document any
	if right != nil {
		document = right()
	}
	if f.in == "body" {
		document = with(document, f.at, textMarker)
	}
	raw, err := json.Marshal(document)
	if err != nil {
		k.T.Fatal(err)
	}
	return path, string(bytes.ReplaceAll(raw, []byte(strconv.Quote(textMarker)), []byte(literal)))
}
