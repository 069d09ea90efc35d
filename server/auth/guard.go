package auth

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/problem"
)

// Guard is the middleware in front of everything that is not public.
type Guard struct {
	Service *Service
	// TrustProxy believes X-Forwarded-Proto, X-Forwarded-Host and X-Forwarded-For.
	TrustProxy bool
	// Public tells which requests an anonymous caller may make.
	Public func(method, path string) bool
}

// Handle lets a request pass that is public or whose caller is known, and
// refuses cross-site requests that carry the ambient authority of a cookie.
func (g *Guard) Handle(c *fiber.Ctx) error {
	bearer, hasBearer := bearerOf(c.Get(fiber.HeaderAuthorization))
	if !hasBearer && !safeMethod(c.Method()) && !g.SameSite(c) {
		return problem.Write(c, &engine.Error{Code: engine.CodeForbidden,
			Message: "This request comes from another site's page.",
			Hint: "Use Loadstone's own page, or an API token in the Authorization header. Behind a proxy that changes the " +
				"host name, start the server with its proxy option."})
	}
	c.SetUserContext(context.WithValue(c.UserContext(), peerKey{}, Peer{IP: g.clientIP(c), Secure: g.secure(c)}))
	if g.Public(c.Method(), c.Path()) {
		return c.Next()
	}
	id, err := g.identify(c.UserContext(), bearer, hasBearer, c.Cookies(CookieName))
	if err != nil {
		if engine.HasCode(err, engine.CodeUnauthorized) {
			c.Set(fiber.HeaderWWWAuthenticate, `Bearer realm="loadstone"`)
		}
		return problem.Write(c, err)
	}
	if !safeMethod(c.Method()) && !readsByPost(c.Path()) && !id.MayWrite() &&
		(id.Token.Kind != KindSession || !own(c.Path())) {
		refusal := &engine.Error{Code: engine.CodeForbidden, Message: "This token may only read.",
			Hint: "Use one with the scope write."}
		if id.User.Role == store.RoleViewer {
			refusal.Message, refusal.Hint = "A viewer looks and changes nothing.",
				"An admin can make you an operator: Settings, Users."
		}
		return problem.Write(c, refusal)
	}
	c.SetUserContext(WithIdentity(c.UserContext(), id))
	return c.Next()
}

// readsByPost tells addresses that change nothing: their question has no room in an address. Cancelling is for
// who asked.
func readsByPost(path string) bool {
	switch path {
	case "/api/query", "/api/query/export", "/api/query/cancel", "/api/templates/validate":
		return true
	}
	return strings.HasPrefix(path, "/prometheus/")
}

// own tells the addresses of what belongs to the caller alone: its session, password and tokens. Whoever may sign in
// may change these.
func own(path string) bool {
	return path == "/api/auth/signout" || path == "/api/auth/password" || path == "/api/auth/tokens" ||
		strings.HasPrefix(path, "/api/auth/tokens/")
}

func (g *Guard) identify(ctx context.Context, bearer string, hasBearer bool, cookie string) (Identity, error) {
	switch {
	case hasBearer:
		return g.Service.Bearer(ctx, bearer)
	case cookie != "":
		return g.Service.Session(ctx, cookie)
	default:
		return Identity{}, ErrAnonymous
	}
}

// bearerOf reads an Authorization header; any such header counts as given, so
// that a wrong one is refused rather than ignored in favour of a cookie.
func bearerOf(header string) (secret string, given bool) {
	if header == "" {
		return "", false
	}
	const scheme = "bearer "
	if len(header) > len(scheme) && strings.EqualFold(header[:len(scheme)], scheme) {
		return strings.TrimSpace(header[len(scheme):]), true
	}
	return "", true
}

func safeMethod(m string) bool {
	return m == http.MethodGet || m == http.MethodHead || m == http.MethodOptions
}

// SameSite reports whether a browser says that the request comes from this
// origin. A request without any such word does not come from a browser's page.
func (g *Guard) SameSite(c *fiber.Ctx) bool {
	switch c.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
	default:
		// A proxy that changes the host name does not change Sec-Fetch-Site.
		return false
	}
	return g.SameOrigin(c)
}

// SameOrigin compares the Origin header, when there is one, with the host asked for.
func (g *Guard) SameOrigin(c *fiber.Ctx) bool {
	origin := c.Get(fiber.HeaderOrigin)
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	host := string(c.Request().Host())
	if forwarded := c.Get(fiber.HeaderXForwardedHost); g.TrustProxy && forwarded != "" {
		host = forwarded
	}
	return strings.EqualFold(u.Host, host)
}

// secure reports whether the browser speaks TLS with us or with a trusted proxy.
func (g *Guard) secure(c *fiber.Ctx) bool {
	return c.Context().IsTLS() || g.TrustProxy && strings.EqualFold(c.Get(fiber.HeaderXForwardedProto), "https")
}

// clientIP is the address that attempts are counted for: the peer's, or the one
// that the nearest trusted proxy saw.
func (g *Guard) clientIP(c *fiber.Ctx) string {
	if g.TrustProxy {
		hops := strings.Split(c.Get(fiber.HeaderXForwardedFor), ",")
		if ip := strings.TrimSpace(hops[len(hops)-1]); ip != "" && len(ip) <= 64 {
			return ip
		}
	}
	return c.Context().RemoteIP().String()
}

// Peer is what is known of the connection behind a request.
type Peer struct {
	// IP is the address that attempts are counted for.
	IP string
	// Secure tells that the browser speaks TLS.
	Secure bool
}

type peerKey struct{}

// PeerOf returns the peer of a request that has passed the guard.
func PeerOf(ctx context.Context) Peer {
	p, _ := ctx.Value(peerKey{}).(Peer)
	return p
}

// Cookie returns the session cookie for a secret; an empty one removes it.
func (p Peer) Cookie(secret string) *http.Cookie {
	cookie := &http.Cookie{Name: CookieName, Value: secret, Path: "/", HttpOnly: true, Secure: p.Secure,
		SameSite: http.SameSiteStrictMode}
	if secret == "" {
		cookie.MaxAge = -1
	} else {
		cookie.MaxAge = int(SessionFor / time.Second)
	}
	return cookie
}
