package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/problem"
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

// named turns the store's not-found into one that says what was not found.
func named(err error, thing, id string) error {
	if errors.Is(err, store.ErrNotFound) {
		var e *engine.Error
		if !errors.As(err, &e) {
			return problem.NotFound(thing, id)
		}
	}
	return err
}

// checkRequest is the middleware before every API handler: what cannot be read,
// or could be read in two ways, goes no further.
func (a *API) checkRequest(c *fiber.Ctx) error {
	if p := checkURL(c); p != nil {
		return problem.Write(c, p)
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
		return problem.Write(c, fiber.ErrRequestEntityTooLarge)
	}
	media, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err != nil || media != fiber.MIMEApplicationJSON {
		return problem.Write(c, fiber.ErrUnsupportedMediaType)
	}
	if len(c.Request().Header.ContentEncoding()) > 0 {
		return problem.Write(c, problem.New(http.StatusUnsupportedMediaType, problem.CodeMediaType,
			"The body is compressed, which this address does not take.", "Send it without Content-Encoding."))
	}
	if p := CheckJSON(body); p != nil {
		return problem.Write(c, p)
	}
	return rest()
}

// WrongMethod answers a method that the address does not take.
func (a *API) WrongMethod(c *fiber.Ctx, methods []string) error {
	problem.RequestOf(c.UserContext()).Route = "method_not_allowed"
	c.Set(fiber.HeaderAllow, strings.Join(methods, ", "))
	return problem.Write(c, fiber.ErrMethodNotAllowed)
}

func checkURL(c *fiber.Ctx) *problem.Problem {
	u, err := url.Parse(string(c.Request().RequestURI()))
	if err != nil {
		return problem.New(http.StatusBadRequest, problem.CodeMalformed, "The address cannot be read.",
			"Escape special characters as %XX.")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return problem.New(http.StatusBadRequest, problem.CodeMalformed, "The query string cannot be read.",
			"Escape special characters as %XX and separate parameters with &.")
	}
	for key, values := range query {
		for _, v := range append(values, key) {
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				return problem.Field(strings.ToValidUTF8(key, "?"), "is not text: it has bytes that are not UTF-8, or a NUL", "")
			}
		}
	}
	return nil
}

// What a body may hold. The limits keep what one request costs near its size: each
// value is looked at a few times, and each name may stand in the path of an error.
const (
	maxDepth  = 64
	maxValues = 50_000
	maxName   = 512 // bytes of one member's name
	maxShown  = 300 // bytes of a path in an error
)

// CheckJSON tells whether the text is one JSON object that means the same to
// every reader: UTF-8 without NUL, no key twice, numbers that a float64 can hold.
// It returns nil, a 400 for what is not JSON, or a 422 that names the field.
func CheckJSON(text []byte) *problem.Problem {
	if !utf8.Valid(text) {
		return malformed("The body is not UTF-8 text.")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	check := checker{dec: dec}
	if err := check.value(); err != nil {
		var p *problem.Problem
		if errors.As(err, &p) {
			return p
		}
		return malformed(fmt.Sprintf("The body is not JSON: %s.", position(text, dec.InputOffset(), err)))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return malformed("The body has more after its JSON object.")
	}
	return nil
}

func malformed(detail string) *problem.Problem {
	return problem.New(http.StatusBadRequest, problem.CodeMalformed, detail, "Send one JSON object.")
}

func position(text []byte, offset int64, err error) string {
	var syntax *json.SyntaxError
	what := "it ends too early"
	if errors.As(err, &syntax) && !strings.Contains(syntax.Error(), "unexpected end") {
		what = syntax.Error()
		if syntax.Offset > 0 && syntax.Offset <= int64(len(text)) {
			offset = syntax.Offset
		}
	}
	before := text[:min(int(offset), len(text))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	return what + " in line " + strconv.Itoa(line) + ", column " +
		strconv.Itoa(len(before)-bytes.LastIndexByte(before, '\n'))
}

// checker reads a document. It keeps the steps to where it is and joins them for an
// error only: a path for each value would cost the square of the body's size.
type checker struct {
	dec    *json.Decoder
	steps  []step
	values int
}

// step is one level of a path: a member's name, or the index of an element.
type step struct {
	name  string
	index int // -1 for a member
}

func (c *checker) refuse(message, hint string) error {
	return problem.Field(orBody(c.path()), message, hint)
}

func (c *checker) path() string {
	var b strings.Builder
	for _, s := range c.steps {
		switch {
		case s.index >= 0:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case b.Len() > 0:
			b.WriteString("." + s.name)
		default:
			b.WriteString(s.name)
		}
		if b.Len() > maxShown {
			return strings.ToValidUTF8(b.String()[:maxShown], "") + "…"
		}
	}
	return b.String()
}

func (c *checker) value() error {
	if c.values++; c.values > maxValues {
		c.steps = nil
		return c.refuse(fmt.Sprintf("holds more than %d values", maxValues), "send less at once")
	}
	if len(c.steps) > maxDepth {
		return c.refuse("is nested too deeply", "")
	}
	token, err := c.dec.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			return c.refuse("contains a NUL character", "remove it")
		}
	case json.Number:
		if _, err := v.Float64(); err != nil {
			return c.refuse("is a number beyond all bounds", "")
		}
	case json.Delim:
		if v == '{' {
			err = c.object()
		} else {
			err = c.array()
		}
		if err != nil {
			return err
		}
		_, err = c.dec.Token()
		return err
	}
	return nil
}

func (c *checker) array() error {
	at := len(c.steps)
	c.steps = append(c.steps, step{})
	for i := 0; c.dec.More(); i++ {
		c.steps[at].index = i
		if err := c.value(); err != nil {
			return err
		}
	}
	c.steps = c.steps[:at]
	return nil
}

func (c *checker) object() error {
	at := len(c.steps)
	seen := map[string]struct{}{}
	for c.dec.More() {
		token, err := c.dec.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		switch {
		case strings.ContainsRune(key, 0):
			return c.refuse("has a name with a NUL character", "remove it")
		case len(key) > maxName:
			return c.refuse(fmt.Sprintf("has a name of %d bytes; at most %d are possible", len(key), maxName), "shorten it")
		}
		c.steps = append(c.steps[:at], step{name: key, index: -1})
		if _, twice := seen[key]; twice {
			return c.refuse("is given twice", "keep one")
		}
		seen[key] = struct{}{}
		if err := c.value(); err != nil {
			return err
		}
	}
	c.steps = c.steps[:at]
	return nil
}

func orBody(path string) string {
	if path == "" {
		return "body"
	}
	return path
}
