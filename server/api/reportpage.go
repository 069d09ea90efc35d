package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
)

// reportPage is the script and the styles of every report, as the build of the page left them.
type reportPage struct {
	script, styles string
	// policy allows the script, which it names by its SHA-256, and nothing else: no network, no other script.
	policy string
}

var errNotBuilt = &engine.Error{Code: engine.CodeUnavailable,
	Message: "This program was built without its user interface, which draws reports.",
	Hint:    "Run make build and start it again."}

// readPage reads report/report.js and report/report.css.
func readPage(ui fs.FS) (*reportPage, error) {
	if ui == nil {
		return nil, errNotBuilt
	}
	script, err := fs.ReadFile(ui, "report/report.js")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNotBuilt
	}
	var styles []byte
	if err == nil {
		styles, err = fs.ReadFile(ui, "report/report.css")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the page of reports: %w", err)
	}
	p := &reportPage{script: inline(string(script)), styles: strings.ReplaceAll(string(styles), "</", `<\/`)}
	sum := sha256.Sum256([]byte(p.script))
	p.policy = "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
	return p, nil
}

// inline is a script that stands within HTML: what would end its element, or begin a comment in it, can stand in
// strings and patterns of JavaScript alone, where a backslash changes nothing.
func inline(script string) string {
	return strings.NewReplacer("</script", `<\/script`, "</SCRIPT", `<\/SCRIPT`, "<!--", `<\!--`).Replace(script)
}

// write makes the file. What is of the run stands in it as base64 of compressed JSON, and its name in the title,
// escaped: nothing of it can be taken for HTML or for a script.
func (p *reportPage) write(title string, content any) ([]byte, error) {
	var packed bytes.Buffer
	encoder := base64.NewEncoder(base64.StdEncoding, &packed)
	zipped, err := gzip.NewWriterLevel(encoder, gzip.BestCompression)
	if err == nil {
		err = json.NewEncoder(zipped).Encode(content)
	}
	if err == nil {
		err = zipped.Close()
	}
	if err == nil {
		err = encoder.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("packing the report: %w", err)
	}
	var out bytes.Buffer
	out.Grow(packed.Len() + len(p.script) + len(p.styles) + 2048)
	fmt.Fprintf(&out, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
<title>%s</title>
<style>%s</style>
</head>
<body>
<div id="root"></div>
<noscript>This report needs JavaScript to draw its charts. It loads nothing from a network.</noscript>
<script type="text/plain" id="content">`, p.policy, html.EscapeString(stripInvisible(title)), p.styles)
	out.Write(packed.Bytes())
	out.WriteString("</script>\n<script>")
	out.WriteString(p.script)
	out.WriteString("</script>\n</body>\n</html>\n")
	return out.Bytes(), nil
}

// stripInvisible is a text without what is not seen or changes how the text around it reads.
func stripInvisible(text string) string {
	const longest = 200
	runes := []rune(strings.ToValidUTF8(text, "\uFFFD"))
	if len(runes) > longest {
		runes = append(runes[:longest], '…')
	}
	for i, r := range runes {
		if textsafe.IsControl(r) {
			runes[i] = '\uFFFD'
		}
	}
	return string(runes)
}
