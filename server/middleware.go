package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

const requestIDHeader = "X-Request-Id"

// observe gives the request its id and deadline, and logs and counts its end.
func (s *Server) observe(c *fiber.Ctx) error {
	begin := time.Now()
	limit := requestTimeout
	switch {
	case api.IsUpload(c.Method(), c.Path()):
		limit = api.UploadTimeout
	case api.IsConnectionTest(c.Method(), c.Path()):
		limit = api.ConnectionTestTimeout
	}
	ctx, cancel := context.WithTimeout(s.streams, limit)
	defer cancel()
	r := &httpx.Request{ID: uuid.NewString()}
	c.SetUserContext(httpx.WithRequest(ctx, r))
	c.Set(requestIDHeader, r.ID)
	if err := c.Next(); err != nil {
		if werr := httpx.Write(c, err); werr != nil {
			return werr
		}
	}
	status := c.Response().StatusCode()
	elapsed, path := time.Since(begin), api.RedactSharePath(c.Path())
	s.metrics.request(c.Method(), s.routeOf(c, r), status, elapsed)
	switch {
	case status >= http.StatusInternalServerError && !errors.Is(r.Cause, context.Canceled):
		s.opts.Log.Error().Err(r.Cause).Str("request_id", r.ID).Str("method", c.Method()).Str("path", path).Int("status",
			status).Dur("elapsed", elapsed).Msg("request failed")
	default:
		s.opts.Log.Debug().AnErr("cause", r.Cause).Str("request_id", r.ID).Str("method", c.Method()).Str("path", path).
			Int("status", status).Dur("elapsed", elapsed).Msg("request")
	}
	return nil
}

// routeOf names the route for metrics: a template, never a path that a caller made up. A request that was refused
// before it came to its route is counted under that where the route has no parameter.
func (s *Server) routeOf(c *fiber.Ctx, r *httpx.Request) string {
	if r.Route != "" {
		return r.Route
	}
	if path := c.Route().Path; path != "/" && path != "" {
		return path
	}
	if path := c.Path(); s.api.IsRoute(path) {
		return strings.Clone(path) // fasthttp uses its memory again
	}
	return "other"
}

// recoverPanic turns a handler's panic into a 500 whose stack is in the log.
func (s *Server) recoverPanic(c *fiber.Ctx) (err error) {
	defer func() {
		if v := recover(); v != nil {
			s.opts.Log.Error().Str("request_id", httpx.RequestOf(c.UserContext()).ID).Interface("panic", v).Bytes("stack",
				debug.Stack()).Msg("a handler panicked")
			c.Response().ResetBody()
			err = httpx.Write(c, fmt.Errorf("handler panicked: %v", v))
		}
	}()
	return c.Next()
}

// contentPolicy allows the page's own files only. Styles may be inline because
// components set them on elements; scripts may not.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' " +
	"data: blob:; font-src 'self' data:; " +
	"connect-src 'self'; manifest-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'self'; " +
	"frame-ancestors 'none'"

// strictTransport has browsers speak TLS alone for a year.
const strictTransport = "max-age=31536000"

// trimSlashes has an address without the slashes that it ends in: the router takes it for the same, and whoever judges
// by the address, for rights, the audit log or what it is counted as, has to see the one that is served.
func trimSlashes(c *fiber.Ctx) error {
	if path := c.Path(); len(path) > 1 && strings.HasSuffix(path, "/") {
		c.Path("/" + strings.Trim(path, "/"))
	}
	return c.Next()
}

// resolveClient sees who asks, and refuses names that are not the server's: a page of another site whose name leads
// here (DNS rebinding) would be of the same origin.
func (s *Server) resolveClient(c *fiber.Ctx) error {
	seen := s.opts.Proxies.Resolve(c.Context())
	c.SetUserContext(auth.WithPeer(c.UserContext(), auth.Peer{IP: seen.IP, Secure: seen.Secure, Host: seen.Host}))
	if !s.opts.Hosts.Allow(seen.Host) || !s.opts.Hosts.Allow(seen.RequestHost) {
		httpx.RequestOf(c.UserContext()).Route = "another_host"
		return httpx.Write(c, httpx.New(http.StatusMisdirectedRequest, httpx.CodeMisdirected,
			"This server is not known by the name that it was asked for.", "Open it by its address, or start it with "+
				"--allowed-hosts NAME (LOADSTONE_ALLOWED_HOSTS) or --public-url."))
	}
	// A browser keeps that for a name with all its ports: other servers on this machine may speak plain HTTP.
	if seen.Secure && !httpx.Loopback(seen.Host) {
		c.Set(fiber.HeaderStrictTransportSecurity, strictTransport)
	}
	return c.Next()
}

func secureHeaders(c *fiber.Ctx) error {
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderXFrameOptions, "DENY")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	c.Set(fiber.HeaderContentSecurityPolicy, contentPolicy)
	c.Set("Cross-Origin-Opener-Policy", "same-origin")
	c.Set("Cross-Origin-Resource-Policy", "same-origin")
	err := c.Next()
	if strings.HasPrefix(c.Path(), "/api") && len(c.Response().Header.Peek(fiber.HeaderCacheControl)) == 0 {
		c.Set(fiber.HeaderCacheControl, "no-store")
	}
	return err
}

// compressMinBytes is the size from which an answer in text is worth compressing.
const compressMinBytes = 2 << 10

// compress gzips the API's larger texts; files of the page bring their own encodings.
func compress(c *fiber.Ctx) error {
	if err := c.Next(); err != nil {
		return err
	}
	res := c.Response()
	if res.IsBodyStream() || len(res.Body()) < compressMinBytes || len(res.Header.ContentEncoding()) > 0 ||
		!c.Context().Request.Header.HasAcceptEncoding("gzip") {
		return nil
	}
	media, _, _ := bytes.Cut(res.Header.ContentType(), []byte(";"))
	if !bytes.HasSuffix(media, []byte("json")) && !bytes.HasPrefix(media, []byte("text/")) {
		return nil
	}
	res.SetBodyRaw(fasthttp.AppendGzipBytesLevel(nil, res.Body(), fasthttp.CompressBestSpeed))
	res.Header.SetContentEncoding("gzip")
	c.Append(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	return nil
}

// onError words what Fiber and fasthttp find before any handler runs.
func (s *Server) onError(c *fiber.Ctx, err error) error {
	r := httpx.RequestOf(c.UserContext())
	if r.ID == "" {
		r = &httpx.Request{ID: uuid.NewString()}
		c.SetUserContext(httpx.WithRequest(s.streams, r))
		c.Set(requestIDHeader, r.ID)
		c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	}
	s.opts.Log.Debug().Err(err).Str("request_id", r.ID).Msg("request refused")
	if errors.Is(err, fiber.ErrBadGateway) {
		err = fiber.ErrBadRequest // fasthttp's word for a client that broke off
	}
	return httpx.Write(c, err)
}

// refuseUnknownMethods answers a method that HTTP does not know, which Fiber
// would refuse in plain text.
func (s *Server) refuseUnknownMethods() {
	next, known := s.app.Server().Handler, s.app.Config().RequestMethods
	s.app.Server().Handler = func(ctx *fasthttp.RequestCtx) {
		if slices.Contains(known, string(ctx.Method())) {
			next(ctx)
			return
		}
		c := s.app.AcquireCtx(ctx)
		defer s.app.ReleaseCtx(c)
		methods := s.api.Allowed(c.Path())
		if len(methods) == 0 {
			methods = []string{http.MethodGet, http.MethodHead} // the page's
		}
		c.Set(fiber.HeaderAllow, strings.Join(methods, ", "))
		_ = s.onError(c, fiber.ErrMethodNotAllowed)
	}
}

// fallback answers what no route took: the page, a wrong method, or nothing there.
func (s *Server) fallback(page *static) fiber.Handler {
	return func(c *fiber.Ctx) error {
		r := httpx.RequestOf(c.UserContext())
		path := c.Path()
		if methods := s.api.Allowed(path); len(methods) > 0 {
			return s.api.WrongMethod(c, methods)
		}
		if !s.isPublic(c.Method(), path) {
			r.Route = "not_found"
			return httpx.Write(c, fiber.ErrNotFound)
		}
		if c.Method() != http.MethodGet && c.Method() != http.MethodHead {
			return s.api.WrongMethod(c, []string{http.MethodGet, http.MethodHead})
		}
		r.Route = "page"
		return page.serve(c)
	}
}

func statusText(status int) string { return strconv.Itoa(status) }
