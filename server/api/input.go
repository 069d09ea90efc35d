package api

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// wellFormedID tells whether text can be an id or a name in a path. What cannot
// be one does not reach the store: it does not exist.
func wellFormedID(id string) bool {
	if id == "" || len(id) > 160 {
		return false
	}
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.@+", r) {
			return false
		}
	}
	return true
}

// unescaped is a step of a path with its %XX decoded; what cannot be stays as it is, and names nothing.
func unescaped(step string) string {
	if text, err := url.PathUnescape(step); err == nil {
		return text
	}
	return step
}

// IDInput is the id in an address.
type IDInput struct {
	ID string `path:"id" maxLength:"200"`
}

// Resolve decodes what the router leaves as it came: %40 is @ in an address too.
func (i *IDInput) Resolve(huma.Context) []error {
	i.ID = unescaped(i.ID)
	return nil
}

// notFoundAs turns the store's not-found into one that says what was not found.
func notFoundAs(err error, thing, id string) error {
	if errors.Is(err, store.ErrNotFound) {
		var e *engine.Error
		if !errors.As(err, &e) {
			return httpx.NotFound(thing, id)
		}
	}
	return err
}

// checkRequest is the middleware before every API handler: what cannot be read,
// or could be read in two ways, goes no further.
func (a *API) checkRequest(c *fiber.Ctx) error {
	if p := checkURL(c); p != nil {
		return httpx.Write(c, p)
	}
	// What the address does not take is 405, whatever its body is, and also where an
	// address with parameters would take it.
	if methods := a.Allowed(c.Path()); len(methods) > 0 && !slices.Contains(methods, c.Method()) {
		return a.WrongMethod(c, methods)
	}
	switch c.Method() {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		return c.Next()
	}
	if IsUpload(c.Method(), c.Path()) {
		return c.Next()
	}
	body := c.Request().Body()
	// The typed handlers take a stream, because the app has streams.
	rest := func() error {
		c.Request().SetBodyStream(bytes.NewReader(body), len(body))
		return c.Next()
	}
	if len(body) == 0 {
		return rest()
	}
	if len(body) > MaxBody {
		return httpx.Write(c, fiber.ErrRequestEntityTooLarge)
	}
	media, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err != nil || media != fiber.MIMEApplicationJSON {
		return httpx.Write(c, fiber.ErrUnsupportedMediaType)
	}
	if len(c.Request().Header.ContentEncoding()) > 0 {
		return httpx.Write(c, httpx.New(http.StatusUnsupportedMediaType, httpx.CodeMediaType,
			"The body is compressed, which this address does not take.", "Send it without Content-Encoding."))
	}
	if p := httpx.CheckJSON(body); p != nil {
		return httpx.Write(c, p)
	}
	return rest()
}

// WrongMethod answers a method that the address does not take.
func (a *API) WrongMethod(c *fiber.Ctx, methods []string) error {
	httpx.RequestOf(c.UserContext()).Route = "method_not_allowed"
	c.Set(fiber.HeaderAllow, strings.Join(methods, ", "))
	return httpx.Write(c, fiber.ErrMethodNotAllowed)
}

func checkURL(c *fiber.Ctx) *httpx.Problem {
	u, err := url.Parse(string(c.Request().RequestURI()))
	if err != nil {
		return httpx.New(http.StatusBadRequest, httpx.CodeMalformed, "The address cannot be read.",
			"Escape special characters as %XX.")
	}
	if !utf8.ValidString(u.Path) || strings.ContainsRune(u.Path, 0) {
		return httpx.New(http.StatusNotFound, engine.CodeNotFound,
			"There is nothing of this name: it has bytes that are not UTF-8, or a NUL.", "Names of things hold neither.")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return httpx.New(http.StatusBadRequest, httpx.CodeMalformed, "The query string cannot be read.",
			"Escape special characters as %XX and separate parameters with &.")
	}
	for key, values := range query {
		for _, v := range append(values, key) {
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				return httpx.Field(strings.ToValidUTF8(key, "?"), "is not text: it has bytes that are not UTF-8, or a NUL", "")
			}
		}
	}
	return nil
}
