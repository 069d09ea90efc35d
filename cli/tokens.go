package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

const tokensBase = "/api/v1/tokens"

// soon is how long before its end a token is said to expire soon.
const soon = 14 * 24 * time.Hour

// Tokens is loadstone user tokens.
type Tokens struct {
	User     string `arg:"" optional:"" help:"The name of the user whose they are; everybody's without it."`
	Sessions bool   `help:"List the sessions of browsers in place of API tokens."`
}

// Run writes the tokens, the newest first.
func (c Tokens) Run(e *terminal.Env, do Do) error {
	kind := "api"
	if c.Sessions {
		kind = "session"
	}
	var list struct {
		Tokens []struct {
			TokenID    string      `json:"token_id"`
			Name       string      `json:"name"`
			Scope      string      `json:"scope"`
			UserName   string      `json:"user_name"`
			ExpiresAt  engine.Time `json:"expires_at"`
			LastUsedAt engine.Time `json:"last_used_at"`
		} `json:"tokens"`
		Total int `json:"total"`
	}
	if err := do(e.Ctx, http.MethodGet, tokensBase+"?kind="+kind, nil, &list); err != nil {
		return err
	}
	if c.User != "" { // who has none is told from who is nobody
		if _, err := (UserNamed{c.User}).path(e.Ctx, do); err != nil {
			return err
		}
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tUSER\tNAME\tMAY\tLAST USED\tEXPIRES")
	for _, t := range list.Tokens {
		if c.User != "" && !strings.EqualFold(c.User, t.UserName) {
			continue
		}
		may, ends := t.Scope, expiry(t.ExpiresAt, time.Now())
		if c.Sessions { // which all end soon
			may, ends = "as its user", instant(t.ExpiresAt)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.TokenID, terminal.Shown(t.UserName),
			terminal.Shown(t.Name), may, instant(t.LastUsedAt), ends)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if more := list.Total - len(list.Tokens); more > 0 {
		_, _ = fmt.Fprintf(e.Stderr, "%d older ones are not shown.\n", more)
	}
	return nil
}

func instant(t engine.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

// expiry is when a token ends, marked when that is soon.
func expiry(t engine.Time, now time.Time) string {
	said := instant(t)
	left := t.Sub(now)
	switch days := int(left / (24 * time.Hour)); {
	case t.IsZero() || left >= soon:
	case days < 1:
		said += " (within a day)"
	case days == 1:
		said += " (in 1 day)"
	default:
		said += fmt.Sprintf(" (in %d days)", days)
	}
	return said
}

// Revoke is loadstone user revoke.
type Revoke struct {
	TokenID string `arg:"" name:"id" help:"As loadstone user tokens shows it."`
}

// Run ends the token.
func (c Revoke) Run(e *terminal.Env, do Do) error {
	if err := do(e.Ctx, http.MethodDelete, tokensBase+"/"+url.PathEscape(c.TokenID), nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Stdout, "%s is refused now.\n", terminal.Shown(c.TokenID))
	return err
}
