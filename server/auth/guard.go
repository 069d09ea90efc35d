package auth

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// UnattendedHeader is what the page sends with requests while its user is away.
const UnattendedHeader = "X-Loadstone-Unattended"

// Guard is the middleware in front of everything that is not public.
type Guard struct {
	Service *Service
	// PublicURL is the address under which browsers reach the server, which is an origin of its own page too; or empty.
	PublicURL string
	// Public tells which requests an anonymous caller may make.
	Public func(method, path string) bool
}

// Handle lets a request pass that is public or whose caller is known, and
// refuses cross-site requests that carry the ambient authority of a cookie.
func (g *Guard) Handle(c *fiber.Ctx) error {
	bearer, hasBearer := bearerOf(c.Get(fiber.HeaderAuthorization))
	if !hasBearer && !safeMethod(c.Method()) && !g.SameSite(c) {
		return httpx.Write(c, &engine.Error{Code: engine.CodeForbidden,
			Message: "This request comes from another site's page.",
			Hint: "Use Loadstone's own page, or an API token in the Authorization header. Behind a proxy that speaks TLS " +
				"or changes the host's name, start the server with --public-url and --trusted-proxies."})
	}
	if g.Public(c.Method(), c.Path()) {
		return c.Next()
	}
	// Sockets are opened again by the page itself.
	if c.Get(UnattendedHeader) != "" || strings.HasPrefix(c.Path(), "/ws") {
		c.SetUserContext(Unattended(c.UserContext()))
	}
	id, err := g.identify(c.UserContext(), bearer, hasBearer, c.Cookies(PeerOf(c.UserContext()).CookieName()))
	if err != nil {
		if engine.HasCode(err, engine.CodeUnauthorized) {
			c.Set(fiber.HeaderWWWAuthenticate, `Bearer realm="loadstone"`)
		}
		return httpx.Write(c, err)
	}
	c.SetUserContext(WithIdentity(c.UserContext(), id))
	if err := id.scopeError(c.Method(), c.Path()); err != nil {
		return httpx.Write(c, err)
	}
	return c.Next()
}

// ReadsByPost tells addresses that change nothing: their question has no room in an address. Cancelling is for
// who asked.
func ReadsByPost(path string) bool {
	switch path {
	case "/api/query", "/api/query/export", "/api/query/cancel", "/api/templates/validate":
		return true
	}
	return strings.HasPrefix(path, "/prometheus/")
}

// isOwnResource tells the addresses of what belongs to the caller alone: its session, password, tokens, and views of
// runs. Whoever may sign in may change these; to show a view to others is another thing.
func isOwnResource(path string) bool {
	if of, is := strings.CutPrefix(path, "/api/v1/run-views"); is {
		// What lies below a view is not: the router takes /shared/ for /shared.
		id, below := strings.CutPrefix(of, "/")
		return of == "" || below && !strings.Contains(id, "/")
	}
	return path == "/api/auth/signout" || path == "/api/auth/password" || path == "/api/auth/tokens" ||
		path == "/api/auth/totp" || strings.HasPrefix(path, "/api/auth/totp/") || strings.HasPrefix(path, "/api/auth/tokens/")
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

// SameOrigin compares the Origin header, when there is one, with what was asked for: scheme, host and port.
func (g *Guard) SameOrigin(c *fiber.Ctx) bool {
	origin := c.Get(fiber.HeaderOrigin)
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	peer := PeerOf(c.UserContext())
	if public, err := url.Parse(g.PublicURL); err == nil && public.Host != "" && sameOrigin(u, public.Scheme,
		public.Host) {
		return true
	}
	scheme := "http"
	if peer.Secure {
		scheme = "https"
	}
	return sameOrigin(u, scheme, peer.Host)
}

// sameOrigin compares an origin with a scheme and a host, which may name the port that the scheme has anyway.
func sameOrigin(origin *url.URL, scheme, host string) bool {
	usual := map[string]string{"http": ":80", "https": ":443"}[scheme]
	return origin.Scheme == scheme &&
		strings.EqualFold(strings.TrimSuffix(origin.Host, usual), strings.TrimSuffix(host, usual))
}

// Peer is what is known of the connection behind a request.
type Peer struct {
	// IP is the address that attempts are counted for.
	IP string
	// Secure tells that the browser speaks TLS.
	Secure bool
	// Host is what the browser asked for, with the port if it named one.
	Host string
}

type peerKey struct{}

// WithPeer returns a context that carries the peer of a request.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// CookieName is the name of the session cookie.
func (p Peer) CookieName() string { return p.PrefixedCookieName(CookieName) }

// PrefixedCookieName is the name of a cookie. Over TLS it has a prefix by which browsers take it from the server itself
// alone, over TLS, for all of its paths: no page of a name below or beside, and nobody on the way, can put another in
// its place.
func (p Peer) PrefixedCookieName(cookie string) string {
	if p.Secure {
		return "__Host-" + cookie
	}
	return cookie
}

// PeerOf returns the peer of a request.
func PeerOf(ctx context.Context) Peer {
	p, _ := ctx.Value(peerKey{}).(Peer)
	return p
}

// Cookie returns the session cookie for a secret; an empty one removes it.
func (p Peer) Cookie(secret string) *http.Cookie {
	//nolint:gosec // Secure follows the connection, see PeerOf
	cookie := &http.Cookie{
		Name:     p.CookieName(),
		Value:    secret,
		Path:     "/",
		HttpOnly: true,
		Secure:   p.Secure,
		SameSite: http.SameSiteStrictMode,
	}
	if secret == "" {
		cookie.MaxAge = -1
	} else {
		cookie.MaxAge = int(SessionTTL / time.Second)
	}
	return cookie
}
