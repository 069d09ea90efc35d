// This part moves files over HTTP that are larger than a request or slower than a handler:
// downloads, paced by their client, and uploads, read off the wire within a size and a time.

package httpx

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"mime"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/rs/zerolog"
)

// stalledWriteTimeout is how long one write of a download may wait for the client.
const stalledWriteTimeout = 30 * time.Second

// SetAttachment says that the answer is a file to be kept.
func SetAttachment(c *fiber.Ctx, media, name string) {
	c.Set(fiber.HeaderContentType, media)
	c.Set(fiber.HeaderContentDisposition, mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	c.Set(fiber.HeaderCacheControl, "private, no-store")
}

// Zip stores files without compressing them again: Parquet is compressed.
func Zip(ctx context.Context, w io.Writer, files []File) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		entry, err := z.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store, Modified: f.Modified})
		if err != nil {
			return fmt.Errorf("adding %s: %w", f.Name, err)
		}
		if err := f.copyTo(ctx, entry); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("closing zip: %w", err)
	}
	return nil
}

// File is one of a zip, opened when its turn comes.
type File struct {
	Name     string
	Modified time.Time
	Open     func(ctx context.Context) (io.ReadCloser, error)
}

func (f File) copyTo(ctx context.Context, w io.Writer) error {
	r, err := f.Open(ctx)
	if err != nil {
		return fmt.Errorf("opening part %s: %w", f.Name, err)
	}
	defer func() { _ = r.Close() }()
	if _, err := io.Copy(w, r); err != nil {
		return fmt.Errorf("copying part %s: %w", f.Name, err)
	}
	return nil
}

// Downloads answer with files that outlive their handlers.
type Downloads struct {
	// Life ends with the server, and the downloads with it.
	Life context.Context
	Log  zerolog.Logger
	// Ends calls end when who asked is signed in no more, until stop is called; nil where nobody signs in.
	Ends func(ctx context.Context, end func()) (stop func())
}

// SendFile answers with a file of so many bytes, and closes it. It is cut short as Stream is when the server stops or
// the caller's sign-in ends.
func (d Downloads) SendFile(c *fiber.Ctx, f io.ReadCloser, size int64) {
	ctx, cancel := context.WithCancel(d.Life)
	forget := func() {}
	if d.Ends != nil {
		forget = d.Ends(c.UserContext(), cancel)
	}
	closer := func() error {
		forget()
		cancel()
		return f.Close()
	}
	c.Context().Response.SetBodyStream(
		&deadlineReader{Reader: contextReader{ctx, f}, closer: closer, conn: c.Context().Conn()},
		int(size),
	)
}

// contextReader reads until its context ends.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(b)
}

// Stream answers with what produce writes. produce runs once the client is
// being written to; its context ends when the client hangs up, the server
// stops or the caller's sign-in ends, and an error of it cuts the answer short, so that half a file is never
// taken for a whole one. ended is called when nothing is left to do. A panic of produce
// ends this download and nothing else.
func (d Downloads) Stream(c *fiber.Ctx, ended func(), produce func(ctx context.Context, w io.Writer) error) error {
	ctx, cancel := context.WithCancel(d.Life)
	if d.Ends != nil {
		forget, before := d.Ends(c.UserContext(), cancel), ended
		ended = func() { forget(); before() }
	}
	r, w := io.Pipe()
	path, id := c.Path(), RequestOf(c.UserContext()).ID
	lazy := &lazyPipe{PipeReader: r, start: func() {
		err := d.recoverPanic(ctx, w, produce)
		if err != nil && ctx.Err() == nil {
			d.Log.Error().Err(err).Str("path", path).Str("request_id", id).Msg("a download ended early")
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
	c.Context().Response.SetBodyStream(&deadlineReader{Reader: lazy, closer: closer, conn: c.Context().Conn()}, -1)
	return nil
}

// recoverPanic turns a panic of produce into an error: it runs in a goroutine of its own,
// where nobody else would recover.
func (d Downloads) recoverPanic(
	ctx context.Context,
	w io.Writer,
	produce func(ctx context.Context, w io.Writer) error,
) (
	err error) {
	defer func() {
		if v := recover(); v != nil {
			d.Log.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Msg("a download panicked")
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

// deadlineReader renews the connection's write deadline with every piece: a long download
// is fine, a client that has stopped taking it is not.
type deadlineReader struct {
	io.Reader
	closer func() error
	conn   net.Conn
}

// Read is called by the server itself, when the handler has returned: a panic here
// would end the process.
func (p *deadlineReader) Read(b []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, err = 0, fmt.Errorf("a download panicked: %v", v)
		}
	}()
	n, err = p.Reader.Read(b)
	_ = p.conn.SetWriteDeadline(time.Now().Add(stalledWriteTimeout))
	return n, err
}

// Close ends the stream; fasthttp calls it whether the answer was written or not.
func (p *deadlineReader) Close() error { return p.closer() }
