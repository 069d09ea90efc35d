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
func checkRequest(c *fiber.Ctx) error {
	if p := checkURL(c); p != nil {
		return problem.Write(c, p)
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
		return problem.Write(c, problem.New(http.StatusUnsupportedMediaType, problem.CodeMediaType, "The body is compressed, which this address does not take.", "Send it without Content-Encoding."))
	}
	if p := CheckJSON(body); p != nil {
		return problem.Write(c, p)
	}
	return rest()
}

func checkURL(c *fiber.Ctx) *problem.Problem {
	u, err := url.Parse(string(c.Request().RequestURI()))
	if err != nil {
		return problem.New(http.StatusBadRequest, problem.CodeMalformed, "The address cannot be read.", "Escape special characters as %XX.")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return problem.New(http.StatusBadRequest, problem.CodeMalformed, "The query string cannot be read.", "Escape special characters as %XX and separate parameters with &.")
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

const maxDepth = 64

// CheckJSON tells whether the text is one JSON object that means the same to
// every reader: UTF-8 without NUL, no key twice, numbers that a float64 can hold.
// It returns nil, a 400 for what is not JSON, or a 422 that names the field.
func CheckJSON(text []byte) *problem.Problem {
	if !utf8.Valid(text) {
		return malformed("The body is not UTF-8 text.")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := checkValue(dec, "", 0); err != nil {
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
	return what + " in line " + strconv.Itoa(line) + ", column " + strconv.Itoa(len(before)-bytes.LastIndexByte(before, '\n'))
}

func checkValue(dec *json.Decoder, path string, depth int) error {
	if depth > maxDepth {
		return problem.Field(path, "is nested too deeply", "")
	}
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			return problem.Field(orBody(path), "contains a NUL character", "remove it")
		}
	case json.Number:
		if _, err := v.Float64(); err != nil {
			return problem.Field(orBody(path), "is a number beyond all bounds", "")
		}
	case json.Delim:
		if v == '{' {
			err = checkObject(dec, path, depth)
		} else {
			for i := 0; dec.More() && err == nil; i++ {
				err = checkValue(dec, path+"["+strconv.Itoa(i)+"]", depth+1)
			}
		}
		if err != nil {
			return err
		}
		_, err = dec.Token()
		return err
	}
	return nil
}

func checkObject(dec *json.Decoder, path string, depth int) error {
	seen := map[string]struct{}{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		name := key
		if path != "" {
			name = path + "." + key
		}
		if strings.ContainsRune(key, 0) {
			return problem.Field(orBody(path), "has a name with a NUL character", "remove it")
		}
		if _, twice := seen[key]; twice {
			return problem.Field(name, "is given twice", "keep one")
		}
		seen[key] = struct{}{}
		if err := checkValue(dec, name, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func orBody(path string) string {
	if path == "" {
		return "body"
	}
	return path
}
