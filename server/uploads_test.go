package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// TestUploadLimits sends many files: what is kept is bounded, and says so.
func TestUploadLimits(t *testing.T) {
	t.Parallel()
	s := openShelf(t, store.PluginLimits{Versions: 3, Files: 5, Bytes: 1 << 20}, nil)
	for i := range 3 {
		s.upload(guest("counters", fmt.Sprintf("1.%d.0", i), ""), 201)
	}
	p := s.send(guest("counters", "2.0.0", "")).problem(t, 409, engine.CodeConflict)
	if p.Detail != "There are 3 versions of the plugin counters, and no more are kept." || p.Hint == "" {
		t.Errorf("problem %+v", p)
	}
	s.upload(guest("a", "1", ""), 201)
	s.upload(guest("b", "1", ""), 201)
	s.send(guest("c", "1", "")).problem(t, 409, engine.CodeConflict)
	same := guest("b", "1", "")
	for range 200 {
		s.send(same).want(t, 200)
	}
	if list := decode[api.PluginList](t, s.do("GET", "/api/plugins", nil).want(t, 200)); len(list.Plugins) != 6 {
		t.Errorf("%d plugins are listed", len(list.Plugins))
	}
}

// TestUploadsWaitTheirTurn holds quarantine: a bounded number wait, the others are told.
func TestUploadsWaitTheirTurn(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	s := openShelf(t, store.PluginLimits{}, func(ctx context.Context, _ []byte) (plugin.Info, error) {
		select {
		case <-held:
		case <-ctx.Done():
		}
		return plugin.Info{}, &engine.Error{Code: engine.CodePlugin, Message: "The file was held up.",
			Cause: plugin.ErrRefused}
	})
	answers := make(chan answer, 12)
	for i := range cap(answers) {
		go func() { answers <- s.send(guest("g", fmt.Sprint(i), "")) }()
	}
	for range 12 - 8 {
		(<-answers).problem(t, 503, engine.CodeUnavailable)
	}
	close(held)
	for range 8 {
		(<-answers).problem(t, 422, "plugin_refused")
	}
}

func form(field string, files ...[]byte) (body []byte, contentType string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range files {
		part, err := w.CreateFormFile(field, "../../x<b>.wasm")
		if err != nil {
			panic(err)
		}
		_, _ = part.Write(f)
	}
	_ = w.Close()
	return b.Bytes(), w.FormDataContentType()
}

// TestBadUploads sends what must be refused, with a sentence, and what must not.
func TestBadUploads(t *testing.T) {
	t.Parallel()
	s := openShelf(t, store.PluginLimits{}, nil)
	honest := guest("counters", "1.0.0", "")
	ok, okType := form("file", honest)
	two, twoType := form("file", honest, honest)
	wrong, wrongType := form("plugin", honest)
	big, bigType := form("file", make([]byte, httpx.MaxUpload+1))
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 64<<20))
	_ = z.Close()
	component := append([]byte("\x00asm"), 0x0d, 0, 1, 0)
	for name, c := range map[string]struct {
		body   []byte
		header []string
		status int
		code   engine.Code
		says   string
	}{
		"nothing": {nil, nil, 400, "malformed", "no file"},
		"text":    {[]byte("hello"), nil, 422, "plugin_refused", "not a plugin"},
		"an ELF file": {append([]byte("\x7fELF"), make([]byte, 200)...), nil, 422, "plugin_refused",
			"not a plugin"},
		"a component":             {component, nil, 422, "plugin_refused", "not a plugin"},
		"cut off":                 {honest[:len(honest)-7], nil, 422, "plugin_refused", "not a plugin"},
		"JSON":                    {[]byte(`{}`), []string{"Content-Type", "application/json"}, 415, "media_type", ""},
		"no type":                 {honest, []string{"Content-Type", ""}, 415, "media_type", ""},
		"a wrong type":            {honest, []string{"Content-Type", "text/html"}, 415, "media_type", ""},
		"compressed":              {honest, []string{"Content-Encoding", "gzip"}, 415, "media_type", "compressed"},
		"a gzip bomb":             {bomb.Bytes(), []string{"Content-Encoding", "gzip"}, 415, "media_type", "compressed"},
		"a gzip bomb, undeclared": {bomb.Bytes(), nil, 422, "plugin_refused", ""},
		"too large":               {make([]byte, httpx.MaxUpload+1), nil, 413, "too_large", "8 MB"},
		"much too large":          {make([]byte, 3*httpx.MaxUpload), nil, 413, "too_large", "8 MB"},
		"a large form":            {big, []string{"Content-Type", bigType}, 413, "too_large", "8 MB"},
		"two files":               {two, []string{"Content-Type", twoType}, 422, "invalid", ""},
		"a wrong field":           {wrong, []string{"Content-Type", wrongType}, 422, "invalid", ""},
		"a form without its end":  {ok[:len(ok)-10], []string{"Content-Type", okType}, 400, "malformed", ""},
		"a form without boundary": {ok, []string{"Content-Type", "multipart/form-data"}, 400, "malformed", ""},
		"HTML in the name":        {guest("<script>", "1.0.0", ""), nil, 422, "plugin_refused", "its name"},
		"a path as name":          {guest("../../etc/passwd", "1.0.0", ""), nil, 422, "plugin_refused", "its name"},
		"a path as version":       {guest("x", "../1", ""), nil, 422, "plugin_refused", "its version"},
		"a malformed schema":      {guest("x", "1", `, "parameters": {"type": 7}`), nil, 422, "plugin_refused", "parameters"},
		"large parameters": {guest("x", "1", `, "parameters": {"description": "`+strings.Repeat("x", 70<<10)+`"}`),
			nil, 422, "plugin_refused", "parameters"},
		"parameters without end": {
			guest("x", "1", `, "parameters": `+strings.Repeat(`{"properties": {"a": `, 40)+`{}`+strings.Repeat("}}", 40)), nil,
			422, "plugin_refused", "nested"},
		"SQL of 2 MB": {guest("x", "1", `, "statements": [{"id": "s", "sql": "`+strings.Repeat("x", 2<<20)+`"}]`),
			nil, 422, "plugin_refused", "the limit is 65536"},
		"terminal escapes": {guest("x", "1", `, "statements": [{"id": "s", "sql": "SELECT \u001b[2J"}]`), nil, 422,
			"plugin_refused", "control characters"},
	} {
		t.Run(name, func(t *testing.T) {
			p := s.send(c.body, c.header...).problem(t, c.status, c.code)
			if !strings.Contains(p.Detail+p.Hint, c.says) || strings.Count(p.Detail, "\n") > 0 {
				t.Errorf("problem %+v", p)
			}
		})
	}
	s.do("POST", "/api/plugins?x=1", honest, "Content-Type", "application/wasm").problem(t, 422, engine.CodeInvalid)
	if left, err := os.ReadDir(s.dir); err != nil || len(left) != 0 {
		t.Errorf("files of refused uploads: %v, %v", left, err)
	}
	// Texts are kept as text: whoever shows them escapes them.
	e := s.upload(guest("counters", "1.0.0", `, "title": "<img src=x onerror=alert(1)>\u001b[31m"`), 201)
	if e.Manifest.Title != "<img src=x onerror=alert(1)>[31m" {
		t.Errorf("title %q", e.Manifest.Title)
	}
	s.do("POST", "/api/plugins", ok, "Content-Type", okType).want(t, 201)
}

// raw sends bytes as they are and returns what comes back until the connection ends.
func (s *shelf) raw(t *testing.T, request string, body []byte) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, strings.ReplaceAll(request, "TOKEN", s.token))
	_, _ = conn.Write(body)
	_ = conn.(*net.TCPConn).CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	text, _ := io.ReadAll(conn)
	return string(text)
}

func TestUploadsOnTheWire(t *testing.T) {
	t.Parallel()
	s := openShelf(t, store.PluginLimits{}, nil)
	wasm := guest("counters", "1.0.0", "")
	large := append(guest("counters", "1.1.0", ""),
		append([]byte{0, 0xc2, 0x9a, 0x0c, 1, 'x'}, make([]byte, 200_000)...)...)
	head := "POST /api/plugins HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\n" +
		"Content-Type: application/wasm\r\n"
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n", n) }
	for name, c := range map[string]struct {
		request string
		body    []byte
		want    string
	}{
		"announced more than is sent": {head + length(len(wasm)+10), wasm, "HTTP/1.1 400"},
		// More than what is read before the handler begins.
		"a large file that breaks off": {head + length(len(large)+10), large, "HTTP/1.1 400"},
		"announced less than is sent":  {head + length(len(wasm)-10), wasm, "HTTP/1.1 422"},
		"announced far too much":       {head + length(1<<40), wasm, "HTTP/1.1 4"},
		"a stranger": {strings.Replace(head, "TOKEN", "nobody", 1) + length(len(wasm)), wasm,
			"HTTP/1.1 401"},
		"a stranger with a large file": {strings.Replace(head, "TOKEN", "nobody", 1) + length(httpx.MaxUpload),
			make([]byte, httpx.MaxUpload), "HTTP/1.1 401"},
		"endless chunks": {head + "Transfer-Encoding: chunked\r\n\r\n",
			bytes.Repeat([]byte("100000\r\n"+strings.Repeat("x", 1<<20)+"\r\n"), 12), "HTTP/1.1 413"},
		"broken chunks": {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", wasm, "HTTP/1.1 400"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.raw(t, c.request, c.body); !strings.HasPrefix(got, c.want) || strings.Count(got, "HTTP/1.1 2") > 0 {
				t.Errorf("answer %.300q, want %s", got, c.want)
			}
		})
	}
	// In chunks, and then another request on the same connection.
	chunked := fmt.Appendf(nil, "%x\r\n%s\r\n0\r\n\r\n", len(wasm), wasm)
	got := s.raw(t, head+"Transfer-Encoding: chunked\r\n\r\n",
		append(chunked, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"...))
	if !strings.HasPrefix(got, "HTTP/1.1 201") || !strings.Contains(got, "HTTP/1.1 200 OK") {
		t.Errorf("answers %.2600q", got)
	}
}

// TestSlowUpload is cut off, whether it stops at its beginning or later, and holds nobody up.
func TestSlowUpload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change    func(o *server.Options)
		announced int
		sent      int
	}{
		"at its beginning": {func(o *server.Options) { o.ReadTimeout = 300 * time.Millisecond }, 5_000, 4},
		"later":            {func(o *server.Options) { o.UploadTimeout = 300 * time.Millisecond }, 100_000, 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, c.change)
			conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_, _ = fmt.Fprintf(conn, "POST /api/plugins HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"+
				"Content-Type: "+
				"application/wasm\r\nContent-Length: %d\r\n\r\n%s",
				b.token, c.announced, strings.Repeat("x", c.sent))
			b.do("GET", "/healthz", nil).want(t, http.StatusOK)
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
			text, err := io.ReadAll(conn)
			if err != nil || !bytes.HasPrefix(text, []byte("HTTP/1.1 408")) ||
				!bytes.Contains(text, []byte(`"code":"timeout"`)) || !bytes.Contains(text, []byte("Connection: close")) {
				t.Errorf("answer %q, %v", text, err)
			}
		})
	}
}
