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

const tokensBase = "/api/v1/tokens" //nolint:gosec // names and columns, no secret

// expirySoon is how long before its end a token is said to expire soon.
const expirySoon = 14 * 24 * time.Hour

// UserTokens is loadstone user tokens.
type UserTokens struct {
	User     string `arg:"" optional:"" help:"User name (default: all users)."`
	Sessions bool   `help:"List browser sessions instead of API tokens."`
}

// Run writes the tokens, the newest first.
func (c UserTokens) Run(e *terminal.Env, do APICall) error {
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
		if _, err := (NamedUser{c.User}).path(e.Ctx, do); err != nil {
			return err
		}
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tUSER\tNAME\tMAY\tLAST USED\tEXPIRES")
	for _, t := range list.Tokens {
		if c.User != "" && !strings.EqualFold(c.User, t.UserName) {
			continue
		}
		may, ends := t.Scope, formatExpiry(t.ExpiresAt, time.Now())
		if c.Sessions { // which all end soon
			may, ends = "as its user", formatInstant(t.ExpiresAt)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.TokenID, terminal.Shown(t.UserName),
			terminal.Shown(t.Name), may, formatInstant(t.LastUsedAt), ends)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if more := list.Total - len(list.Tokens); more > 0 {
		_, _ = fmt.Fprintf(e.Stderr, "%d older ones are not shown.\n", more)
	}
	return nil
}

func formatInstant(t engine.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

// formatExpiry is when a token ends, marked when that is soon.
func formatExpiry(t engine.Time, now time.Time) string {
	message := formatInstant(t)
	left := t.Sub(now)
	switch days := int(left / (24 * time.Hour)); {
	case t.IsZero() || left >= expirySoon:
	case days < 1:
		message += " (within a day)"
	case days == 1:
		message += " (in 1 day)"
	default:
		message += fmt.Sprintf(" (in %d days)", days)
	}
	return message
}

// UserRevoke is loadstone user revoke.
type UserRevoke struct {
	TokenID string `arg:"" name:"id" help:"Id shown by loadstone user tokens."`
}

// Run ends the token.
func (c UserRevoke) Run(e *terminal.Env, do APICall) error {
	if err := do(e.Ctx, http.MethodDelete, tokensBase+"/"+url.PathEscape(c.TokenID), nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Stdout, "%s is refused now.\n", terminal.Shown(c.TokenID))
	return err
}
