package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/server/problem"
)

const (
	// MaxUpload is the size limit of an uploaded plugin, in bytes.
	MaxUpload = 8 << 20
	// maxEnvelope is what a form may add around the file.
	maxEnvelope = 64 << 10
	// UploadTimeout bounds the whole request: arrival, the wait for others, and quarantine.
	UploadTimeout = 2 * time.Minute
	// maxUploads is how many files may be arriving at the same time.
	maxUploads = 8

	uploadPath = "/api/plugins"
	wasmType   = "application/wasm"
)

// IsUpload tells whether a request's body is a plugin, which its handler reads itself.
func IsUpload(method, path string) bool { return method == http.MethodPost && path == uploadPath }

type uploadKey struct{}

// SetUpload hands the body of an upload to its handler.
func SetUpload(c *fiber.Ctx, body io.Reader) { c.Locals(uploadKey{}, body) }

func describeUpload(a *API) huma.Operation {
	o := op(http.MethodPost, uploadPath, "upload-plugin", tagPlugins, "Upload a plugin",
		http.StatusConflict, http.StatusRequestTimeout, http.StatusUnprocessableEntity)
	o.Description = fmt.Sprintf("The WebAssembly file as it is, or in the field `file` of a form; at most %d MB, not "+
		"compressed. "+
		"It is examined in quarantine. One that is refused answers 422 with the code `plugin_refused` and a sentence that "+
		"says why. "+
		"One that passes is stored disabled; an admin enables it. The same bytes again answer 200. "+
		"Another file of the same name and version is 409, unless the earlier one has never been enabled: then it takes "+
		"its place.", MaxUpload>>20)
	file := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		wasmType:              {Schema: file},
		fiber.MIMEOctetStream: {Schema: file},
		fiber.MIMEMultipartForm: {Schema: &huma.Schema{Type: huma.TypeObject, Required: []string{"file"},
			Properties: map[string]*huma.Schema{"file": file}}},
	}}
	entry := a.huma.OpenAPI().Components.Schemas.Schema(entryType, true, "PluginEntry")
	answer := func(text string) *huma.Response {
		return &huma.Response{Description: text,
			Content: map[string]*huma.MediaType{fiber.MIMEApplicationJSON: {Schema: entry}}}
	}
	o.Responses = map[string]*huma.Response{"201": answer("It is stored, disabled."),
		"200": answer("The same bytes were there already.")}
	return o
}

// upload takes a plugin file. The body is on the wire still: the guard has let the
// caller pass before any of it is read.
func (a *API) upload(c *fiber.Ctx) error {
	entry, created, err := a.takeUpload(c)
	if err != nil {
		var e *engine.Error
		if errors.Is(err, plugin.ErrRefused) && errors.As(err, &e) && e.Code == engine.CodePlugin {
			hint := e.Hint
			if hint == "" {
				hint = "Its author is told the same, and more, by: loadstone plugin test FILE"
			}
			p := problem.New(http.StatusUnprocessableEntity, problem.CodePluginRefused, e.Message, hint)
			p.Errors = e.Fields
			err = p
		}
		return problem.Write(c, err)
	}
	text, err := jsonText(entry)
	if err != nil {
		return problem.Write(c, err)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		a.audit(c.UserContext(), a.identity(c.UserContext()).User.UserID, "plugin.upload", entry.SHA256,
			entry.Name+"@"+entry.Version)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	c.Set(fiber.HeaderLocation, "/api/plugins/"+entry.SHA256)
	return c.Status(status).Send(text)
}

func (a *API) takeUpload(c *fiber.Ctx) (plugin.Entry, bool, error) {
	for key := range c.Queries() {
		return plugin.Entry{}, false, problem.Field(key, "is not known here", "an upload takes no parameters")
	}
	select {
	case a.uploads <- struct{}{}:
		defer func() { <-a.uploads }()
	default:
		return plugin.Entry{}, false,
			&engine.Error{Code: engine.CodeUnavailable, Message: "Other plugins are being uploaded now.",
				Hint: "Try again in a few seconds."}
	}
	wasm, err := a.readUpload(c)
	if err != nil {
		return plugin.Entry{}, false, err
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), UploadTimeout)
	defer cancel()
	return a.Plugins.Upload(ctx, wasm, a.identity(ctx).User.Name)
}

// readUpload reads the file off the wire, up to the limit and within UploadFor.
func (a *API) readUpload(c *fiber.Ctx) ([]byte, error) {
	header := &c.Request().Header
	if len(header.ContentEncoding()) > 0 {
		return nil, problem.New(http.StatusUnsupportedMediaType, problem.CodeMediaType,
			"The body is compressed, which this address does not take.", "Send it without Content-Encoding.")
	}
	media, params, err := mime.ParseMediaType(string(header.ContentType()))
	if err != nil || media != wasmType && media != fiber.MIMEOctetStream && media != fiber.MIMEMultipartForm {
		return nil, problem.New(http.StatusUnsupportedMediaType, problem.CodeMediaType,
			"The body is not of a type this address takes.",
			"Send the file with Content-Type: application/wasm, or in the field `file` of a multipart/form-data form.")
	}
	if header.ContentLength() > MaxUpload+maxEnvelope {
		return nil, uploadTooLarge()
	}
	if err := c.Context().Conn().SetReadDeadline(time.Now().Add(a.UploadFor)); err != nil {
		return nil, fmt.Errorf("reading an upload: %w", err)
	}
	body, ok := c.Locals(uploadKey{}).(io.Reader)
	if !ok {
		return nil, noFile()
	}
	limited := &io.LimitedReader{R: body, N: MaxUpload + maxEnvelope + 1}
	var wasm []byte
	if media == fiber.MIMEMultipartForm {
		wasm, err = formFile(multipart.NewReader(limited, params["boundary"]))
	} else {
		wasm, err = io.ReadAll(io.LimitReader(limited, MaxUpload+1))
		// The end of the connection looks like the end of the body.
		if n := header.ContentLength(); err == nil && n > len(wasm) {
			err = io.ErrUnexpectedEOF
		}
	}
	var p *problem.Problem
	var waited net.Error
	switch {
	case len(wasm) > MaxUpload, limited.N <= 0:
		return nil, uploadTooLarge()
	case errors.As(err, &p):
		return nil, p
	case errors.As(err, &waited) && waited.Timeout():
		return nil, problem.New(http.StatusRequestTimeout, problem.CodeTimeout, "The file did not arrive in time.",
			"Send the whole file without pausing; Content-Length has to be its exact size.")
	case err != nil:
		return nil, problem.New(http.StatusBadRequest, problem.CodeMalformed,
			"The upload broke off before its end, or is not the form that its header announces.",
			"Send the whole file; Content-Length has to be its exact size.")
	case len(wasm) == 0:
		return nil, noFile()
	}
	return wasm, nil
}

// formFile returns the field `file` of a form, and nothing else may be in it.
func formFile(form *multipart.Reader) ([]byte, error) {
	var wasm []byte
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			return wasm, nil
		}
		if err != nil {
			return nil, err
		}
		if part.FormName() != "file" || wasm != nil {
			return nil, problem.Field("file", "is the only field of an upload, once", "send one file at a time")
		}
		if wasm, err = io.ReadAll(io.LimitReader(part, MaxUpload+1)); err != nil || len(wasm) > MaxUpload {
			return wasm, err
		}
	}
}

func uploadTooLarge() error {
	return &engine.Error{Code: engine.CodeTooLarge, Message: fmt.Sprintf("The file has more than %d MB.", MaxUpload>>20),
		Hint: "Build it for size: strip the debug information (Go: -ldflags='-s -w', clang: -Wl,--strip-all)."}
}

func noFile() error {
	return problem.New(http.StatusBadRequest, problem.CodeMalformed, "The request has no file.",
		"Send the .wasm file as the body, or in the field `file` of a form.")
}
