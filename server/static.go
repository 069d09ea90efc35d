package server

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// static serves the built page from memory. Its files never change while the
// program runs, so tags and compressed forms are made once.
type static struct {
	files map[string]*file
}

type file struct {
	data      []byte
	media     string
	tag       string
	immutable bool
	// gzip and brotli make their form on first use; empty means not worth it.
	gzip, brotli func() []byte
}

// hashedName recognises names that change with their content, as the build makes them.
var hashedName = regexp.MustCompile(`[-.][A-Za-z0-9_-]{8,}\.[a-z0-9]+$`)

func newStatic(ui fs.FS) (*static, error) {
	s := &static{files: map[string]*file{}}
	if ui == nil {
		return s, nil
	}
	err := fs.WalkDir(ui, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name == "report" {
			return fs.SkipDir // what reports are made of is no page of its own
		}
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		data, err := fs.ReadFile(ui, name)
		if err != nil {
			return err
		}
		s.files["/"+name] = newFile(name, data, ui)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return s, err
}

func newFile(name string, data []byte, ui fs.FS) *file {
	sum := sha256.Sum256(data)
	f := &file{data: data, media: mediaType(name), tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`,
		immutable: strings.HasPrefix(name, "assets/") && hashedName.MatchString(name)}
	worth := len(data) > 1024 && (strings.HasPrefix(f.media, "text/") || strings.Contains(f.media, "javascript") ||
		strings.Contains(f.media, "json") || strings.Contains(f.media, "svg") || strings.Contains(f.media, "wasm"))
	f.gzip = sync.OnceValue(func() []byte { return f.smaller(worth, ui, name+".gz", gzipBytes) })
	f.brotli = sync.OnceValue(func() []byte { return f.smaller(worth, ui, name+".br", brotliBytes) })
	return f
}

// smaller returns the file as the build compressed it, or as made returns it, if that is smaller.
func (f *file) smaller(worth bool, ui fs.FS, name string, made func([]byte) ([]byte, error)) []byte {
	if !worth {
		return nil
	}
	out, err := fs.ReadFile(ui, name)
	if err != nil {
		out, err = made(f.data)
	}
	if err != nil || len(out) >= len(f.data) {
		return nil
	}
	return out
}

func gzipBytes(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	return b.Bytes(), nil
}

func brotliBytes(data []byte) ([]byte, error) {
	var b bytes.Buffer
	// Level 6 is near the best for scripts at a tenth of its time.
	w := brotli.NewWriterLevel(&b, 6)
	_, err := w.Write(data)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	return b.Bytes(), nil
}

// mediaType does not ask the system's table, which differs from machine to machine.
func mediaType(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".html":
		return fiber.MIMETextHTMLCharsetUTF8
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".json", ".map":
		return fiber.MIMEApplicationJSON
	case ".webmanifest":
		return "application/manifest+json"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".ico":
		return "image/x-icon"
	case ".woff2":
		return "font/woff2"
	case ".wasm":
		return "application/wasm"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	if media := mime.TypeByExtension(path.Ext(name)); media != "" {
		return media
	}
	return fiber.MIMEOctetStream
}

func (s *static) serve(c *fiber.Ctx) error {
	name := c.Path()
	f, ok := s.files[name]
	if !ok || strings.HasSuffix(name, ".br") || strings.HasSuffix(name, ".gz") {
		// A file that is not there is not the page: a browser that asks for an old
		// build's script must see an error, not HTML.
		if strings.HasPrefix(name, "/assets/") || path.Ext(name) != "" && name != "/index.html" {
			return httpx.Write(c, fiber.ErrNotFound)
		}
		if f, ok = s.files["/index.html"]; !ok {
			return notBuilt(c)
		}
	}
	return f.send(c)
}

func (f *file) send(c *fiber.Ctx) error {
	cache := "no-cache"
	if f.immutable {
		cache = "public, max-age=31536000, immutable"
	}
	c.Set(fiber.HeaderCacheControl, cache)
	c.Set(fiber.HeaderETag, f.tag)
	c.Set(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	if matchesTag(c.Get(fiber.HeaderIfNoneMatch), f.tag) {
		c.Status(http.StatusNotModified)
		return nil
	}
	c.Set(fiber.HeaderContentType, f.media)
	data := f.data
	header := &c.Context().Request.Header
	if header.HasAcceptEncoding("br") && len(f.brotli()) > 0 {
		data = f.brotli()
		c.Set(fiber.HeaderContentEncoding, "br")
	} else if header.HasAcceptEncoding("gzip") && len(f.gzip()) > 0 {
		data = f.gzip()
		c.Set(fiber.HeaderContentEncoding, "gzip")
	}
	// The bytes are shared and never written to.
	c.Response().SetBodyRaw(data)
	return nil
}

func matchesTag(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

const notBuiltPage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Loadstone</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:15vh auto;padding:0 24px}code{font-family:ui-monospace,monospace}</style></head>
<body><h1>The page has not been built</h1>
<p>This program was built without its user interface. Run <code>make build</code> in the repository and start it again.</p>
<p>The API works all the same: <a href="/api/docs">/api/docs</a> describes it.</p></body></html>
`

func notBuilt(c *fiber.Ctx) error {
	if !strings.Contains(c.Get(fiber.HeaderAccept), "text/html") {
		return httpx.Write(c, &engine.Error{Code: engine.CodeUnavailable,
			Message: "This program was built without its user interface.", Hint: "Run make build and start it again."})
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	return c.Status(http.StatusServiceUnavailable).SendString(notBuiltPage)
}
