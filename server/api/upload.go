package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/server/httpx"
)

const (
	// UploadTimeout bounds the whole request: arrival, the wait for others, and quarantine.
	UploadTimeout = 4 * time.Minute
	// maxUploads is how many files may be arriving at the same time.
	maxUploads = 8

	uploadPath = "/api/plugins"
)

// IsUpload tells whether a request's body is a plugin, which its handler reads itself.
func IsUpload(method, path string) bool { return method == http.MethodPost && path == uploadPath }

func describeUpload(a *API) huma.Operation {
	o := op(http.MethodPost, uploadPath, "upload-plugin", tagPlugins, "Upload a plugin",
		http.StatusConflict, http.StatusRequestTimeout, http.StatusUnprocessableEntity)
	o.Description = fmt.Sprintf("The WebAssembly file as it is, or in the field `file` of a form; at most %d MB, not "+
		"compressed. "+
		"It is examined in quarantine. One that is refused answers 422 with the code `plugin_refused` and a sentence that "+
		"says why. "+
		"One that passes is stored disabled; an admin enables it. The same bytes again answer 200. "+
		"Another file of the same name and version is 409, unless the earlier one has never been enabled: then it takes "+
		"its place.", httpx.MaxUpload>>20)
	file := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		httpx.MediaType:       {Schema: file},
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
	entry, created, err := a.receiveUpload(c)
	if err != nil {
		var e *engine.Error
		if errors.Is(err, plugin.ErrRefused) && errors.As(err, &e) && e.Code == engine.CodePlugin {
			hint := e.Hint
			if hint == "" {
				hint = "The author sees the same, and more, with: loadstone plugin test FILE"
			}
			p := httpx.New(http.StatusUnprocessableEntity, httpx.CodePluginRefused, e.Message, hint)
			p.Errors = e.Fields
			err = p
		}
		return httpx.Write(c, err)
	}
	text, err := jsonText(entry)
	if err != nil {
		return httpx.Write(c, err)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		a.audit.Record(c.UserContext(), a.identity(c.UserContext()).User.UserID, "plugin.upload", entry.SHA256,
			entry.Name+"@"+entry.Version)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	c.Set(fiber.HeaderLocation, "/api/plugins/"+entry.SHA256)
	return c.Status(status).Send(text)
}

func (a *API) receiveUpload(c *fiber.Ctx) (plugin.Entry, bool, error) {
	for key := range c.Queries() {
		return plugin.Entry{}, false, httpx.Field(key, "is not known here", "an upload takes no parameters")
	}
	select {
	case a.uploads <- struct{}{}:
		defer func() { <-a.uploads }()
	default:
		return plugin.Entry{}, false,
			&engine.Error{Code: engine.CodeUnavailable, Message: "Other plugins are being uploaded now.",
				Hint: "Try again in a few seconds."}
	}
	wasm, err := httpx.Receive(c, a.UploadFor)
	if err != nil {
		return plugin.Entry{}, false, err
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), UploadTimeout)
	defer cancel()
	return a.Plugins.Upload(ctx, wasm, a.identity(ctx).User.Name)
}
