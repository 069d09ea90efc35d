package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
)

// securityTextPath is where who has found a weakness looks for whom to tell (RFC 9116).
const securityTextPath = "/.well-known/security.txt"

// securityText says whom to tell of a weakness. The server exists as it is asked, so that the text is good for a year
// from then.
func (s *Server) securityText(c *fiber.Ctx) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Contact: %s\nExpires: %s\n", s.opts.SecurityContact,
		time.Now().UTC().AddDate(1, 0, 0).Format("2006-01-02T00:00:00Z"))
	if s.opts.PublicURL != "" {
		fmt.Fprintf(&b, "Canonical: %s%s\n", strings.TrimSuffix(s.opts.PublicURL, "/"), securityTextPath)
	}
	c.Set(fiber.HeaderContentType, "text/plain; charset=utf-8")
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.SendString(b.String())
}
