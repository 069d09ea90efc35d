package oidc

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

const (
	basePath     = "/api/auth/oidc"
	startPath    = basePath + "/start"
	callbackPath = basePath + "/callback"
	cookieName   = "loadstone_oidc"
)

// IsPublic tells the addresses that a stranger's browser may ask for.
func IsPublic(method, path string) bool {
	return method == http.MethodGet && (path == startPath || path == callbackPath)
}

type handlers struct {
	*client
	a   *api.API
	log zerolog.Logger
}

// Register adds the routes to an API and its app.
func Register(app *fiber.App, a *api.API, o Options, log zerolog.Logger) {
	h := handlers{newClient(o), a, log}
	describe := func(path, id, summary string) huma.Operation {
		op := api.NewOperation(http.MethodGet, path, id, "Sign-in", summary, http.StatusServiceUnavailable)
		op.Security = []map[string][]string{{}}
		op.Responses = map[string]*huma.Response{"303": {Description: "Where the browser goes on"}}
		return op
	}
	a.Raw(app, describe(startPath, "begin-oidc", "Send a browser to the sign-in provider"), h.handleStart)
	a.Raw(app, describe(callbackPath, "end-oidc", "Take a browser back from the sign-in provider"), h.handleCallback)
}

func (h handlers) callbackURL() string { return h.a.URL() + callbackPath }

// flowCookie is that of a flow. It comes back from another site's page, which a strict one would not. Its path is that
// of the whole server, which the prefix of its name over TLS asks for.
func flowCookie(c *fiber.Ctx, value string, maxAge time.Duration) *http.Cookie {
	peer := auth.PeerOf(c.UserContext())
	out := &http.Cookie{ //nolint:gosec // Secure follows the connection, see PeerOf
		Name:     peer.PrefixedCookieName(cookieName),
		Value:    value,
		Path:     "/",
		HttpOnly: true,
		Secure:   peer.Secure,
		SameSite: http.SameSiteLaxMode,
		MaxAge:   int(maxAge / time.Second),
	}
	if value == "" {
		out.MaxAge = -1
	}
	return out
}

func (h handlers) handleStart(c *fiber.Ctx) error {
	to, sealed, err := h.begin(c.UserContext(), h.callbackURL(), c.Query("next"))
	if err != nil {
		return h.reject(c, err)
	}
	c.Response().Header.Add(fiber.HeaderSetCookie, flowCookie(c, sealed, flowTTL).String())
	return c.Redirect(to, http.StatusSeeOther)
}

func (h handlers) handleCallback(c *fiber.Ctx) error {
	ctx := c.UserContext()
	// Whatever comes of it, the cookie is good for nothing any more.
	c.Response().Header.Add(fiber.HeaderSetCookie, flowCookie(c, "", 0).String())
	who, next, err := h.finish(ctx, h.callbackURL(), c.Cookies(auth.PeerOf(ctx).PrefixedCookieName(cookieName)),
		callbackParams{Code: c.Query("code"),
			State: c.Query("state"), Issuer: c.Query("iss"), Error: c.Query("error")})
	if err != nil {
		return h.reject(c, err)
	}
	u, changed, err := h.a.Store.ExternalUser(ctx, h.opts.Issuer+" "+who.Subject, who.Name, who.Role)
	switch {
	case err != nil:
		return h.reject(c, err)
	case !u.DisabledAt.IsZero():
		return h.reject(c, &engine.Error{Code: engine.CodeForbidden, Message: "You are locked out of this server.",
			Hint: "An admin of Loadstone can let you in again."})
	}
	if changed {
		h.a.Auth.InvalidateUser(u.UserID) // what is open under another role ends
		h.a.AuditLog().Record(ctx, u.UserID, "user.role", u.Name, string(u.Role)+", by the sign-in provider")
	}
	secret, id, err := h.a.Auth.StartSession(ctx, u)
	if err != nil {
		return h.reject(c, err)
	}
	h.a.AuditLog().Record(ctx, id.User.UserID, "auth.signin", id.User.Name, "by the sign-in provider")
	c.Response().Header.Add(fiber.HeaderSetCookie, auth.PeerOf(ctx).Cookie(secret).String())
	return c.Redirect(next, http.StatusSeeOther)
}

// reject answers a browser with the page to sign in, which has a sentence for the code, and a program with a problem.
func (h handlers) reject(c *fiber.Ctx, err error) error {
	e := engine.AsError(err)
	h.log.Warn().Err(err).Str("code", string(e.Code)).Msg("a sign-in by the provider was refused")
	if e.Code == engine.CodeUnauthorized || e.Code == engine.CodeForbidden || e.Code == engine.CodeConflict {
		h.a.AuditLog().RecordSignInFailure(c.UserContext(), auth.PeerOf(c.UserContext()).IP, "")
	}
	if !strings.Contains(c.Get(fiber.HeaderAccept), fiber.MIMETextHTML) {
		return httpx.Write(c, err)
	}
	return c.Redirect("/signin?"+url.Values{"refused": {string(e.Code)}}.Encode(), http.StatusSeeOther)
}
