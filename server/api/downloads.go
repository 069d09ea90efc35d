package api

import (
	"context"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/server/httpx"
)

func describeDownload(o huma.Operation) huma.Operation {
	text := &huma.Schema{Type: huma.TypeString}
	binary := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	o.Parameters = []*huma.Param{
		{Name: "id", In: "path", Required: true, Schema: text},
		{Name: "part", In: "query", Description: "The name of one part.", Schema: text},
		{Name: "format", In: "query", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"parquet", "csv"}}},
	}
	o.Responses = map[string]*huma.Response{"200": {Description: "The executions, as an attachment.",
		Content: map[string]*huma.MediaType{
			"application/zip": binary, "application/vnd.apache.parquet": binary, "text/csv": binary,
		}}}
	o.Errors = append(o.Errors, http.StatusUnprocessableEntity)
	return o
}

// Attachment says in the document that an operation answers with a file, of one of these media types.
func Attachment(o *huma.Operation, what string, media ...string) {
	content := map[string]*huma.MediaType{}
	for _, m := range media {
		content[m] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	o.Responses = map[string]*huma.Response{"200": {Description: what, Content: content}}
}

// executions streams what a run recorded.
func (a *API) executions(c *fiber.Ctx) error {
	ctx, id := c.UserContext(), unescaped(c.Params("id"))
	for key := range c.Queries() {
		if key != "part" && key != "format" {
			return httpx.Write(c, httpx.Field(key, "is not known here", "part and format are"))
		}
	}
	part, format := c.Query("part"), c.Query("format", "parquet")
	if format != "parquet" && format != "csv" {
		return httpx.Write(c, httpx.Field("format", "must be parquet or csv", ""))
	}
	run, err := a.storedRun(ctx, id)
	if err == nil {
		err = executions.CheckDeleted(run)
	}
	if err != nil {
		return httpx.Write(c, err)
	}
	all, err := a.Store.Artifacts(ctx, id)
	if err != nil {
		return httpx.Write(c, notFoundAs(err, "run", id))
	}
	var parts []engine.Artifact
	for _, p := range all {
		// Parameters have an address of their own, which asks who may see their values.
		if p.Kind != record.KindParams && (part == "" || p.Name == part) {
			parts = append(parts, p)
		}
	}
	switch {
	case len(parts) == 0 && part != "":
		return httpx.Write(c, httpx.NotFound("part", part))
	case len(parts) == 0:
		return httpx.Write(c, httpx.New(http.StatusNotFound, engine.CodeNotFound, "The run has no recorded executions.",
			"They are here when the run has ended and its record has been fetched."))
	case format == "csv":
		return a.sendCSV(c, id, part)
	case part != "":
		return a.sendPart(c, parts[0])
	}
	files := make([]httpx.File, 0, len(parts))
	// A part that is missing is found now, while the answer can still say so.
	for _, p := range parts {
		f, _, err := a.Files.Open(ctx, id, p.Name)
		if err != nil {
			return httpx.Write(c, notFoundAs(err, "part", p.Name))
		}
		_ = f.Close()
		files = append(files, httpx.File{Name: p.Name, Modified: p.CreatedAt.Time,
			Open: func(ctx context.Context) (io.ReadCloser, error) {
				f, _, err := a.Files.Open(ctx, id, p.Name)
				return f, err
			}})
	}
	httpx.SetAttachment(c, "application/zip", "run-"+id+"-executions.zip")
	return a.downloads().Stream(c, func() {}, func(ctx context.Context, w io.Writer) error {
		return httpx.Zip(ctx, w, files)
	})
}

func (a *API) sendCSV(c *fiber.Ctx, id, part string) error {
	writer, ok := a.Files.(CSVWriter)
	switch {
	case part != "":
		return httpx.Write(c, httpx.Field("part", "cannot be combined with format=csv", "leave one of them out"))
	case !ok:
		return httpx.Write(c, &engine.Error{Code: engine.CodeUnsupported, Message: "This server does not write CSV.",
			Hint:   "Download the Parquet parts.",
			Fields: []engine.FieldError{{Field: "format", Message: "csv is not available"}}})
	}
	leave, err := a.exports.Acquire(c.UserContext(), a.identity(c.UserContext()).User.UserID)
	if err != nil {
		return httpx.Write(c, err)
	}
	httpx.SetAttachment(c, "text/csv; charset=utf-8", "run-"+id+"-executions.csv")
	return a.downloads().Stream(c, leave, func(ctx context.Context, w io.Writer) error {
		return writer.WriteCSV(ctx, id, w)
	})
}

func (a *API) sendPart(c *fiber.Ctx, p engine.Artifact) error {
	f, size, err := a.Files.Open(c.UserContext(), p.RunID, p.Name)
	if err != nil {
		return httpx.Write(c, notFoundAs(err, "part", p.Name))
	}
	httpx.SetAttachment(c, "application/vnd.apache.parquet", p.Name)
	a.downloads().SendFile(c, f, size)
	return nil
}

func (a *API) downloads() httpx.Downloads {
	return httpx.Downloads{Life: a.Streams, Log: a.Log, Ends: a.Auth.OnRequestEnd}
}
