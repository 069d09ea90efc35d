package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/server/httpx"
)

const (
	// maxDrainBytes and lingerFor bound what is read of a refused body, so that its
	// sender, who is still sending, gets to see the answer.
	maxDrainBytes = 8 * httpx.MaxUpload
	drainTimeout  = 3 * time.Second
)

// signInLimit is the size limit of a sign-in's body, which anybody may send.
const signInLimit = 4 << 10

type bodyKey struct{}

// drainBody keeps hold of a body that is still arriving, and takes what nobody read of
// it off the connection when the request has been answered.
func (s *Server) drainBody(c *fiber.Ctx) error {
	if !c.Request().IsBodyStream() {
		return c.Next()
	}
	wire := &stickyEOF{r: c.Context().RequestBodyStream()}
	c.Locals(bodyKey{}, wire)
	announced := c.Request().Header.ContentLength()
	defer func() {
		if !errors.Is(wire.err, io.EOF) && (wire.err != nil || announced > maxDrainBytes || !s.drainRest(c, wire)) {
			c.Context().SetConnectionClose()
		}
	}()
	return c.Next()
}

// readBody reads the request's body, bounded, once the guard knows who sends it. What
// a stranger sends is read where it can be a sign-in only. An upload is left on the
// wire for its handler, which has limits of its own.
func (s *Server) readBody(c *fiber.Ctx) error {
	wire, ok := c.Locals(bodyKey{}).(*stickyEOF)
	if !ok {
		return c.Next()
	}
	limit := api.MaxBody
	switch {
	case api.IsUpload(c.Method(), c.Path()):
		httpx.SetBody(c, wire)
		return c.Next()
	case api.IsSignIn(c.Method(), c.Path()):
		limit = signInLimit
	case s.isPublic(c.Method(), c.Path()):
		return c.Next()
	}
	tooLarge := func() error {
		return &engine.Error{Code: engine.CodeTooLarge, Message: "The request's body is too large.",
			Hint: "A body may have " + size(limit) + " here."}
	}
	if c.Request().Header.ContentLength() > limit {
		return httpx.Write(c, tooLarge())
	}
	text, err := io.ReadAll(io.LimitReader(wire, int64(limit)+1))
	var waited net.Error
	switch {
	case len(text) > limit:
		return httpx.Write(c, tooLarge())
	case errors.As(err, &waited) && waited.Timeout():
		return fiber.ErrRequestTimeout
	case err != nil:
		return fiber.ErrBadRequest
	}
	c.Request().SetBodyRaw(text)
	return c.Next()
}

func size(bytes int) string {
	if bytes >= 1<<20 {
		return fmt.Sprintf("%d MB", bytes>>20)
	}
	return fmt.Sprintf("%d KB", bytes>>10)
}

// stickyEOF keeps to the end of a body: a chunked one would go on with the next request.
type stickyEOF struct {
	r   io.Reader
	err error
}

func (o *stickyEOF) Read(p []byte) (n int, err error) {
	if o.err == nil {
		n, o.err = o.r.Read(p)
	}
	return n, o.err
}

// drainRest reads what is left of a body and reports whether that was all of it.
func (s *Server) drainRest(c *fiber.Ctx, body io.Reader) bool {
	if err := c.Context().Conn().SetReadDeadline(time.Now().Add(drainTimeout)); err != nil {
		return false
	}
	n, err := io.Copy(io.Discard, io.LimitReader(body, maxDrainBytes))
	return err == nil && n < maxDrainBytes
}
