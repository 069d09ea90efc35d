package server

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/server/api"
)

const (
	// lingerBytes and lingerFor bound what is read of a refused upload, so that its
	// sender, who is still sending, gets to see the answer.
	lingerBytes = 8 * api.MaxUpload
	lingerFor   = 3 * time.Second
)

// bodies reads the request's body before the handlers, bounded. An upload's is
// left on the wire: its handler reads it once it knows who sends it.
func (s *Server) bodies(c *fiber.Ctx) error {
	req := c.Request()
	if !req.IsBodyStream() {
		return c.Next()
	}
	body := c.Context().RequestBodyStream()
	if api.IsUpload(c.Method(), c.Path()) {
		wire := &onceEnded{r: body}
		api.SetUpload(c, wire)
		err := c.Next()
		if !s.linger(c, wire) {
			c.Context().SetConnectionClose()
		}
		return err
	}
	if req.Header.ContentLength() > bodyLimit {
		return s.cutOff(c, fiber.ErrRequestEntityTooLarge)
	}
	text, err := io.ReadAll(io.LimitReader(body, bodyLimit+1))
	var waited net.Error
	switch {
	case len(text) > bodyLimit:
		return s.cutOff(c, fiber.ErrRequestEntityTooLarge)
	case errors.As(err, &waited) && waited.Timeout():
		return s.cutOff(c, fiber.ErrRequestTimeout)
	case err != nil:
		return s.cutOff(c, fiber.ErrBadRequest)
	}
	req.SetBodyRaw(text)
	return c.Next()
}

// cutOff refuses a request of which something is still on the wire, where the next
// request would be looked for.
func (s *Server) cutOff(c *fiber.Ctx, err error) error {
	c.Context().SetConnectionClose()
	return err
}

// onceEnded keeps to the end of a body: a chunked one would go on with the next request.
type onceEnded struct {
	r   io.Reader
	err error
}

func (o *onceEnded) Read(p []byte) (n int, err error) {
	if o.err == nil {
		n, o.err = o.r.Read(p)
	}
	return n, o.err
}

// linger reads what is left of a body and reports whether that was all of it.
func (s *Server) linger(c *fiber.Ctx, body io.Reader) bool {
	if err := c.Context().Conn().SetReadDeadline(time.Now().Add(lingerFor)); err != nil {
		return false
	}
	n, err := io.Copy(io.Discard, io.LimitReader(body, lingerBytes))
	return err == nil && n < lingerBytes
}
