package api

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/problem"
)

// stuckFor is how long one write of a download may wait for the client.
const stuckFor = 30 * time.Second

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

// executions streams what a run recorded.
func (a *API) executions(c *fiber.Ctx) error {
	ctx, id := c.UserContext(), unescaped(c.Params("id"))
	for key := range c.Queries() {
		if key != "part" && key != "format" {
			return problem.Write(c, problem.Field(key, "is not known here", "part and format are"))
		}
	}
	part, format := c.Query("part"), c.Query("format", "parquet")
	if format != "parquet" && format != "csv" {
		return problem.Write(c, problem.Field("format", "must be parquet or csv", ""))
	}
	if err := a.exists(ctx, id); err != nil {
		return problem.Write(c, err)
	}
	all, err := a.Store.Artifacts(ctx, id)
	if err != nil {
		return problem.Write(c, named(err, "run", id))
	}
	var parts []engine.Artifact
	for _, p := range all {
		if part == "" || p.Name == part {
			parts = append(parts, p)
		}
	}
	switch {
	case len(parts) == 0 && part != "":
		return problem.Write(c, problem.NotFound("part", part))
	case len(parts) == 0:
		return problem.Write(c, problem.New(http.StatusNotFound, engine.CodeNotFound, "The run has no recorded executions.",
			"They are here when the run has ended and its record has been fetched."))
	case format == "csv":
		return a.sendCSV(c, id, part)
	case part != "":
		return a.sendPart(c, parts[0])
	}
	// A part that is missing is found now, while the answer can still say so.
	for _, p := range parts {
		f, _, err := a.Files.Open(ctx, id, p.Name)
		if err != nil {
			return problem.Write(c, named(err, "part", p.Name))
		}
		_ = f.Close()
	}
	attach(c, "application/zip", "run-"+id+"-executions.zip")
	return a.stream(c, func() {}, func(ctx context.Context, w io.Writer) error { return a.writeZip(ctx, w, id, parts) })
}

func attach(c *fiber.Ctx, media, name string) {
	c.Set(fiber.HeaderContentType, media)
	c.Set(fiber.HeaderContentDisposition, mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	c.Set(fiber.HeaderCacheControl, "private, no-store")
}

func (a *API) sendCSV(c *fiber.Ctx, id, part string) error {
	writer, ok := a.Files.(CSVWriter)
	switch {
	case part != "":
		return problem.Write(c, problem.Field("part", "cannot be combined with format=csv", "leave one of them out"))
	case !ok:
		return problem.Write(c, &engine.Error{Code: engine.CodeUnsupported, Message: "This server does not write CSV.",
			Hint:   "Download the Parquet parts.",
			Fields: []engine.FieldError{{Field: "format", Message: "csv is not available"}}})
	}
	leave, err := a.exports.enter(c.UserContext(), a.identity(c.UserContext()).User.UserID)
	if err != nil {
		return problem.Write(c, err)
	}
	attach(c, "text/csv; charset=utf-8", "run-"+id+"-executions.csv")
	return a.stream(c, leave, func(ctx context.Context, w io.Writer) error { return writer.WriteCSV(ctx, id, w) })
}

func (a *API) sendPart(c *fiber.Ctx, p engine.Artifact) error {
	f, size, err := a.Files.Open(c.UserContext(), p.RunID, p.Name)
	if err != nil {
		return problem.Write(c, named(err, "part", p.Name))
	}
	attach(c, "application/vnd.apache.parquet", p.Name)
	c.Context().Response.SetBodyStream(&paced{Reader: f, closer: f.Close, conn: c.Context().Conn()}, int(size))
	return nil
}

// writeZip stores the parts without compressing them again: Parquet is compressed.
func (a *API) writeZip(ctx context.Context, w io.Writer, id string, parts []engine.Artifact) error {
	z := zip.NewWriter(w)
	for _, p := range parts {
		entry, err := z.CreateHeader(&zip.FileHeader{Name: p.Name, Method: zip.Store, Modified: p.CreatedAt.Time})
		if err != nil {
			return fmt.Errorf("adding %s: %w", p.Name, err)
		}
		if err := a.copyPart(ctx, entry, id, p.Name); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("closing zip: %w", err)
	}
	return nil
}

func (a *API) copyPart(ctx context.Context, w io.Writer, id, name string) error {
	f, _, err := a.Files.Open(ctx, id, name)
	if err != nil {
		return fmt.Errorf("opening part %s: %w", name, err)
	}
	defer func() { _ = f.Close() }()
	if _, err := io.Copy(w, f); err != nil {
		return fmt.Errorf("copying part %s: %w", name, err)
	}
	return nil
}

// stream answers with what produce writes. produce runs once the client is
// being written to; its context ends when the client hangs up or the server
// stops, and an error of it cuts the answer short, so that half a file is never
// taken for a whole one. ended is called when nothing is left to do. A panic of produce
// ends this download and nothing else.
func (a *API) stream(c *fiber.Ctx, ended func(), produce func(ctx context.Context, w io.Writer) error) error {
	ctx, cancel := context.WithCancel(a.Streams)
	r, w := io.Pipe()
	path, id := c.Path(), problem.RequestOf(c.UserContext()).ID
	lazy := &lazyPipe{PipeReader: r, start: func() {
		err := a.guarded(ctx, w, produce)
		if err != nil && ctx.Err() == nil {
			a.Log.Error().Err(err).Str("path", path).Str("request_id", id).Msg("a download ended early")
		}
		_ = w.CloseWithError(err)
	}}
	stop := context.AfterFunc(ctx, func() { _ = r.CloseWithError(context.Cause(ctx)) })
	closer := func() error {
		stop()
		cancel()
		_ = r.Close()
		lazy.wait()
		ended()
		return nil
	}
	c.Context().Response.SetBodyStream(&paced{Reader: lazy, closer: closer, conn: c.Context().Conn()}, -1)
	return nil
}

// guarded turns a panic of produce into an error: it runs in a goroutine of its own,
// where nobody else would recover.
func (a *API) guarded(ctx context.Context, w io.Writer, produce func(ctx context.Context, w io.Writer) error) (
	err error) {
	defer func() {
		if v := recover(); v != nil {
			a.Log.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Msg("a download panicked")
			err = fmt.Errorf("a download panicked: %v", v)
		}
	}()
	return produce(ctx, w)
}

// lazyPipe starts its writer with the first read, so that an answer whose body
// is never read (HEAD) starts nothing.
type lazyPipe struct {
	*io.PipeReader
	start func()
	once  sync.Once
	done  sync.WaitGroup
}

func (l *lazyPipe) Read(p []byte) (int, error) {
	l.once.Do(func() { l.done.Go(l.start) })
	return l.PipeReader.Read(p)
}

func (l *lazyPipe) wait() { l.done.Wait() }

// paced renews the connection's write deadline with every piece: a long download
// is fine, a client that has stopped taking it is not.
type paced struct {
	io.Reader
	closer func() error
	conn   net.Conn
}

// Read is called by the server itself, when the handler has returned: a panic here
// would end the process.
func (p *paced) Read(b []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, err = 0, fmt.Errorf("a download panicked: %v", v)
		}
	}()
	n, err = p.Reader.Read(b)
	_ = p.conn.SetWriteDeadline(time.Now().Add(stuckFor))
	return n, err
}

// Close ends the stream; fasthttp calls it whether the answer was written or not.
func (p *paced) Close() error { return p.closer() }
