// This part is how the server says no: application/problem+json (RFC 9457)
// with a stable code, a sentence, a hint and the fields that are wrong. Nothing
// internal is in it; the cause stays with the request for the log.

package httpx

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/jsonx"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/store"
)

// ContentType is the media type of a problem.
const ContentType = "application/problem+json"

// The codes of problems that only HTTP has; the others are engine codes.
const (
	CodeMalformed        engine.Code = "malformed"          // 400: not a request that can be read
	CodeMethodNotAllowed engine.Code = "method_not_allowed" // 405
	CodeMisdirected      engine.Code = "misdirected"        // 421: a name that is not this server's
	CodeTimeout          engine.Code = "timeout"            // 408
	CodeMediaType        engine.Code = "media_type"         // 415
	CodePluginRefused    engine.Code = "plugin_refused"     // 422: an uploaded file that is not accepted
)

// Problem is the body of every error response.
type Problem struct { //nolint:errname // the noun of RFC 9457
	Type      string              `json:"type" doc:"A URN made of the code." example:"urn:loadstone:problem:not_found"`
	Title     string              `json:"title" doc:"The HTTP status in words."`
	Status    int                 `json:"status" doc:"The HTTP status."`
	Detail    string              `json:"detail" doc:"One sentence that says what is wrong."`
	Code      engine.Code         `json:"code" doc:"A stable code that programs may branch on." example:"not_found"`
	Hint      string              `json:"hint,omitempty" doc:"What to do about it."`
	Errors    []engine.FieldError `json:"errors,omitempty" doc:"The fields that are wrong, each with its path in the document."`
	Instance  string              `json:"instance,omitempty" doc:"A URN that names this one occurrence; the server's log has it too."`
	RequestID string              `json:"request_id,omitempty" doc:"The id of the request in the server's log."`

	cause error
}

// Error returns the sentence.
func (p *Problem) Error() string { return p.Detail }

// Unwrap returns the cause, which is never shown.
func (p *Problem) Unwrap() error { return p.cause }

// GetStatus returns the HTTP status; huma asks for it.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType turns JSON into problem+json; huma asks for it.
func (p *Problem) ContentType(string) string { return ContentType }

// New returns a problem with its title and type filled in.
func New(status int, code engine.Code, detail, hint string) *Problem {
	return &Problem{
		Type: "urn:loadstone:problem:" + string(code), Title: http.StatusText(status), Status: status,
		Detail: detail, Code: code, Hint: hint,
	}
}

// Field returns a 422 for one field.
func Field(field, message, hint string) *Problem {
	return From(engine.InvalidField(field, message, hint))
}

// NotFound returns a 404 that names the thing: NotFound("run", id).
func NotFound(thing, id string) *Problem {
	return New(http.StatusNotFound, engine.CodeNotFound, "There is no "+thing+" "+quote(id)+".",
		"It may have been deleted. The list shows what there is.")
}

func quote(s string) string {
	const longest = 80
	s = strings.ToValidUTF8(s, "?")
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return "'" + s + "'"
}

var statuses = map[engine.Code]int{
	engine.CodeInvalid: http.StatusUnprocessableEntity, engine.CodeNotFound: http.StatusNotFound,
	engine.CodeConflict: http.StatusConflict, engine.CodeUnauthorized: http.StatusUnauthorized,
	engine.CodeForbidden: http.StatusForbidden, engine.CodeTarget: http.StatusUnprocessableEntity,
	engine.CodePlugin: http.StatusUnprocessableEntity, engine.CodeUnavailable: http.StatusServiceUnavailable,
	engine.CodeTooLarge: http.StatusRequestEntityTooLarge, engine.CodeUnsupported: http.StatusUnprocessableEntity,
	engine.CodeRateLimited: http.StatusTooManyRequests, engine.CodeInternal: http.StatusInternalServerError,
}

// From turns any error into a problem: user-facing errors keep their words,
// sentinels of the store get some, and what is unknown becomes a 500 that says
// nothing of its cause.
func From(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var e *engine.Error
	var fe *fiber.Error
	switch {
	case errors.As(err, &e):
		status, ok := statuses[e.Code]
		if !ok {
			status = http.StatusInternalServerError
		}
		p = New(status, e.Code, e.Message, e.Hint)
		p.Errors = e.Fields
	case errors.As(err, &fe):
		p = fromStatus(fe.Code)
	case errors.Is(err, store.ErrNotFound), errors.Is(err, plugin.ErrNotFound):
		p = New(http.StatusNotFound, engine.CodeNotFound, "There is no such thing.", "It may have been deleted.")
	case errors.Is(err, store.ErrInUse):
		p = New(http.StatusConflict, engine.CodeConflict, "Something else still uses it.", "Change what refers to it first.")
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrFenced):
		p = New(http.StatusConflict, engine.CodeConflict, "Its present state does not allow that.",
			"Load it again and retry.")
	case errors.Is(err, store.ErrUnavailable):
		p = New(http.StatusServiceUnavailable, engine.CodeUnavailable, "The control store cannot be reached.",
			"Try again in a few seconds.")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		p = New(http.StatusServiceUnavailable, engine.CodeUnavailable,
			"The answer took too long, or the server is shutting down.", "Try again.")
	default:
		internal := engine.AsError(err)
		p = New(http.StatusInternalServerError, engine.CodeInternal, internal.Message,
			"The server's log has the details under this request_id.")
	}
	p.cause = err
	return p
}

// fromStatus words the errors that Fiber and fasthttp find by themselves.
func fromStatus(status int) *Problem {
	switch status {
	case http.StatusNotFound:
		return New(status, engine.CodeNotFound, "There is nothing at this address.", "/api/docs lists the addresses.")
	case http.StatusMethodNotAllowed:
		return New(status, CodeMethodNotAllowed, "This address does not take that method.",
			"The Allow header lists the methods it takes.")
	case http.StatusRequestEntityTooLarge:
		return New(status, engine.CodeTooLarge, "The request's body is too large.", "A JSON body may have 1 MB.")
	case http.StatusRequestHeaderFieldsTooLarge:
		return New(status, engine.CodeTooLarge, "The request's header is too large.",
			"Send fewer or shorter header fields and cookies.")
	case http.StatusRequestTimeout:
		return New(status, CodeTimeout, "The request did not arrive in time.", "Send the whole body without pausing.")
	case http.StatusUpgradeRequired:
		return New(status, CodeMalformed, "This address speaks WebSocket only.",
			"Connect with the WebSocket protocol, version 13.")
	case http.StatusUnsupportedMediaType:
		return New(status, CodeMediaType, "The body is not of a type this address takes.",
			"Send Content-Type: application/json.")
	case http.StatusNotAcceptable:
		return New(status, CodeMediaType, "The answer has no form that the Accept header allows.", "Accept application/json.")
	default:
		if status >= 500 {
			return New(http.StatusInternalServerError, engine.CodeInternal, "Something went wrong inside Loadstone.",
				"The server's log has the details under this request_id.")
		}
		return New(http.StatusBadRequest, CodeMalformed, "The request cannot be read.",
			"Check the request line, the header and the body's length.")
	}
}

// maxFields is how many wrong fields one answer names: a body may have thousands.
const maxFields = 100

// fromHuma words the findings of huma's validation of parameters and bodies.
func fromHuma(status int, errs []error) *Problem {
	var fields []engine.FieldError
	for _, err := range errs {
		if len(fields) == maxFields {
			break
		}
		var detail *huma.ErrorDetail
		if !errors.As(err, &detail) {
			return From(err)
		}
		location := detail.Location
		if name, ok := strings.CutPrefix(detail.Message, "expected required property "); ok {
			location += "." + strings.TrimSuffix(name, " to be present")
		}
		// The value is left out on purpose: it may be a secret.
		fields = append(fields, engine.FieldError{Field: fieldName(location), Message: humaMessage(detail.Message),
			Hint: humaHint(detail)})
	}
	var p *Problem
	switch {
	case status >= 500:
		return fromStatus(status)
	case status == http.StatusUnprocessableEntity:
		p = New(status, engine.CodeInvalid, "The request has a field that cannot be used.", "")
		if len(fields) > 1 {
			p.Detail = "The request has fields that cannot be used."
		}
	case status == http.StatusBadRequest && len(fields) == 0:
		p = New(status, CodeMalformed, "The request has no body.", "Send a JSON object with Content-Type: application/json.")
	default:
		p = fromStatus(status)
	}
	p.Errors = fields
	return p
}

func fieldName(location string) string {
	for _, prefix := range []string{"body.", "query.", "path.", "header."} {
		if name, ok := strings.CutPrefix(location, prefix); ok {
			return name
		}
	}
	return location
}

func humaMessage(message string) string {
	switch {
	case message == "unexpected property", message == "unknown query parameter":
		return "is not known here"
	case strings.HasPrefix(message, "expected required property "):
		return "is required"
	case strings.HasPrefix(message, "expected value to be one of"):
		return "must be " + strings.TrimPrefix(message, "expected value to be ")
	case strings.HasPrefix(message, "expected string to be "):
		return "must be " + strings.TrimPrefix(message, "expected string to be ")
	case strings.HasPrefix(message, "expected length <= "):
		return "is longer than " + strings.TrimPrefix(message, "expected length <= ") + " characters"
	case message == "expected length >= 1":
		return "is empty"
	case strings.HasPrefix(message, "expected length >= "):
		return "has less characters than " + strings.TrimPrefix(message, "expected length >= ")
	case strings.HasPrefix(message, "expected number <= "):
		return "must be at most " + strings.TrimPrefix(message, "expected number <= ")
	case strings.HasPrefix(message, "expected number >= "):
		return "must be at least " + strings.TrimPrefix(message, "expected number >= ")
	case strings.HasPrefix(message, "expected "):
		return "must be " + strings.TrimPrefix(message, "expected ")
	}
	return message
}

func humaHint(d *huma.ErrorDetail) string {
	if strings.HasPrefix(d.Location, "body") && d.Message == "unexpected property" {
		return "/api/docs lists the fields of this request"
	}
	if d.Message == "unknown query parameter" {
		return "/api/docs lists the parameters of this request"
	}
	return ""
}

// Request is what the server keeps about one HTTP request for its log.
type Request struct {
	ID string
	// Cause is the error behind the problem that was answered, if any.
	Cause error
	// Route is set by handlers that serve many addresses, for metrics.
	Route string
}

type requestKey struct{}

// WithRequest returns a context that carries the request's record.
func WithRequest(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestOf returns the record of the request; it is never nil.
func RequestOf(ctx context.Context) *Request {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		return r
	}
	return &Request{}
}

// Stamp copies p, marks it with the request's id and keeps the cause for the log.
func (p *Problem) Stamp(r *Request) *Problem {
	stamped := *p
	stamped.RequestID = r.ID
	if r.ID != "" {
		stamped.Instance = "urn:uuid:" + r.ID
	}
	if p.cause != nil {
		r.Cause = p.cause
	}
	return &stamped
}

// Write answers a Fiber request with the problem behind err.
func Write(c *fiber.Ctx, err error) error {
	p := From(err).Stamp(RequestOf(c.UserContext()))
	var answer any = p
	media := ContentType
	if strings.HasPrefix(c.Path(), Prometheus+"/api/") {
		answer, media = p.prometheus(), fiber.MIMEApplicationJSON
	}
	body, merr := json.Marshal(answer)
	if merr != nil {
		return merr
	}
	var with huma.HeadersError
	if errors.As(err, &with) {
		for name, values := range with.GetHeaders() {
			c.Set(name, strings.Join(values, ", "))
		}
	}
	c.Set(fiber.HeaderContentType, media)
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(p.Status).Send(textsafe.EscapeJSON(body))
}

// Prometheus is under which the API of Prometheus is found, whose clients read errors in its form alone.
const Prometheus = "/prometheus"

type prometheusError struct {
	Status    string `json:"status"`
	ErrorType string `json:"errorType"`
	Error     string `json:"error"`
}

// prometheus is the problem as Prometheus would say it.
func (p *Problem) prometheus() prometheusError {
	kind := "internal"
	switch {
	case p.Status == http.StatusNotFound:
		kind = "not_found"
	case p.Status == http.StatusTooManyRequests, p.Status == http.StatusServiceUnavailable:
		kind = "unavailable"
	case p.Status < http.StatusInternalServerError:
		kind = "bad_data"
	}
	return prometheusError{"error", kind, strings.TrimSpace(p.Detail + " " + p.Hint)}
}

// CheckJSON tells whether the body of a request is one JSON object that means the same to every reader. It returns nil,
// a 400 for what is not JSON, or a 422 that names the field.
func CheckJSON(text []byte) *Problem {
	err := jsonx.Check(text)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jsonx.ErrMalformed):
		return New(http.StatusBadRequest, CodeMalformed, "The body "+err.Error()+".", "Send one JSON object.")
	}
	return From(err)
}
